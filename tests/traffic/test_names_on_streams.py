"""How many names a proxy may have on its stream, which keeps them as long as it lasts."""

import pytest

from tests.support.proxies.proxies import CLUSTERS, ENDPOINTS, ROUTES, World, settled
from traffic.stream import LONGEST_NAME, MOST_NAMES, DiscoveryRequest, TooManyNamesError


@pytest.fixture
def world() -> World:
    return World({"web": {"a"}, "api": {"x"}})


def test_a_proxy_may_name_so_many_and_what_it_lets_go_makes_room(world: World) -> None:
    server, proxy = settled(world)
    some = [f"name{number}" for number in range(MOST_NAMES // 2)]
    for _ in range(3):  # once more is not one more
        server.stream.hear(DiscoveryRequest(ENDPOINTS, subscribe=tuple(some)), 0)
    for turn in range(3):
        others = tuple(f"turn{turn}-{name}" for name in some[:-2])
        server.stream.hear(DiscoveryRequest(ENDPOINTS, subscribe=others), 0)
        server.stream.hear(DiscoveryRequest(ENDPOINTS, unsubscribe=others), 0)
    world.clusters["web"].add("b")
    server.publish()
    server.settle(proxy)
    assert server.stream.acknowledged == server.marks[-1]


NAMES = tuple(f"name{number}" for number in range(MOST_NAMES + 1))


@pytest.mark.parametrize(
    "said",
    [
        DiscoveryRequest(ENDPOINTS, subscribe=NAMES),
        DiscoveryRequest(CLUSTERS, subscribe=NAMES),
        DiscoveryRequest(CLUSTERS, holds=dict.fromkeys(NAMES, "1")),
        DiscoveryRequest(ROUTES, subscribe=("n" * (LONGEST_NAME + 1),)),
        DiscoveryRequest(ROUTES, holds={"rollway": "1" * (LONGEST_NAME + 1)}),
    ],
    ids=["endpoints", "clusters", "held", "a long name", "a long version"],
)
def test_a_proxy_that_names_more_than_there_can_be_is_refused_and_nothing_of_it_is_kept(
    world: World, said: DiscoveryRequest
) -> None:
    server, _ = settled(world)
    before = repr(server.stream._parts)
    with pytest.raises(TooManyNamesError, match="at most"):
        server.stream.hear(said, 0)
    assert repr(server.stream._parts) == before
