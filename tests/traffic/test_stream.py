"""One proxy's stream: what is said in which order, what becomes of a refusal, and who is known to lag."""

import pytest

from tests.support.proxies.proxies import CLUSTERS, ENDPOINTS, ROUTES, Proxy, Server, World, settled
from traffic.resources import ResourceKind
from traffic.stream import DiscoveryRequest


@pytest.fixture
def world() -> World:
    return World({"web": {"a"}, "api": {"x"}})


def steps(server: Server, proxy: Proxy) -> list[tuple[ResourceKind, tuple[str, ...], tuple[str, ...]]]:
    """What the proxy is told next, one thing after the other, each taken over before the next is said."""
    said = []
    while server.tell(proxy) or proxy.inbox:
        said += [(told.response.kind, told.response.updates, told.response.removed) for told in proxy.inbox]
        while proxy.inbox:
            proxy.take()
        while proxy.outbox:
            server.hear(proxy)
    return said


def test_a_cluster_comes_with_its_endpoints_before_the_routes_to_it_and_goes_after_them(world: World) -> None:
    server, proxy = settled(world)
    del world.clusters["api"]
    world.clusters["new"] = {"n"}
    server.publish()
    assert steps(server, proxy) == [
        (CLUSTERS, ("new",), ()),
        (ENDPOINTS, ("new",), ()),
        (ROUTES, ("rollway",), ()),
        (CLUSTERS, (), ("api",)),
    ]


def test_a_change_of_endpoints_waits_for_nothing_and_says_nothing_else(world: World) -> None:
    server, proxy = settled(world)
    world.clusters["web"].add("b")
    server.publish()
    assert steps(server, proxy) == [(ENDPOINTS, ("web",), ())]
    assert steps(server, proxy) == []


def test_a_cluster_that_changes_gets_its_endpoints_once_more(world: World) -> None:
    """Envoy warms it anew, and would give it no request before it has heard of some."""
    server, proxy = settled(world)
    world.setting = 1
    server.publish()
    assert steps(server, proxy)[:2] == [(CLUSTERS, ("web", "api"), ()), (ENDPOINTS, ("web", "api"), ())]


@pytest.mark.parametrize("setting", [0, 1])
def test_who_leaves_a_cluster_is_told_of_when_no_route_leads_there_any_more(world: World, setting: int) -> None:
    server, proxy = settled(world)
    world.left, world.setting = {"web"}, setting
    server.publish()
    before, after = steps_around_routes(server, proxy)
    assert "web" not in before
    assert "web" in after
    assert server.stream.acknowledged == server.marks[-1]
    world.left = set()
    server.publish()
    before, after = steps_around_routes(server, proxy)
    assert ("web" in before, "web" in after) == (True, False)


def test_a_proxy_that_refuses_the_routes_is_told_who_leaves_all_the_same(world: World) -> None:
    server, proxy = settled(world)
    world.left = {"web"}
    server.publish()
    assert server.tell(proxy)
    proxy.take(refuses=True)
    server.hear(proxy)
    assert steps(server, proxy) == [(ENDPOINTS, ("web",), ())]


def steps_around_routes(server: Server, proxy: Proxy) -> tuple[set[str], set[str]]:
    """The names of what is told before the routes, and after them."""
    told = steps(server, proxy)
    at = [kind for kind, _, _ in told].index(ROUTES)
    before, after = ({name for _, changed, _ in some for name in changed} for some in (told[:at], told[at + 1 :]))
    return before, after


def test_who_asks_anew_is_told_anew(world: World) -> None:
    server, proxy = settled(world)
    server.stream.hear(DiscoveryRequest(ENDPOINTS, subscribe=("web",)), 0)
    assert steps(server, proxy) == [(ENDPOINTS, ("web",), ())]


def test_a_proxy_that_comes_back_with_all_it_held_is_told_what_changed_meanwhile(world: World) -> None:
    _, proxy = settled(world)
    world.clusters["web"].add("b")
    server = Server(world)
    server.publish()
    proxy.begin()
    while proxy.outbox:
        server.hear(proxy)
    assert server.stream.acknowledged is None
    assert steps(server, proxy) == [(ENDPOINTS, ("web",), ())]
    assert server.stream.acknowledged == server.marks[-1]


def test_without_any_deployment_a_proxy_is_told_so_once() -> None:
    server, proxy = Server(World()), Proxy()
    server.publish()
    proxy.begin()
    while proxy.outbox:
        server.hear(proxy)
    assert steps(server, proxy) == [(CLUSTERS, (), ()), (ROUTES, ("rollway",), ())]
    assert server.stream.acknowledged == server.marks[-1]


def test_what_is_refused_among_many_is_found_in_halves_and_holds_up_nothing_else(world: World) -> None:
    names = [f"web{number}" for number in range(16)]
    world.clusters |= {name: {name} for name in names}
    server, proxy = settled(world)
    for name in names:
        world.clusters[name].add("more")
    server.publish()
    told, taken = 0, set()
    while server.tell(proxy) or proxy.inbox:
        told += 1
        changed = proxy.inbox[0].response.updates
        proxy.take(refuses="web5" in changed)
        taken |= set() if "web5" in changed else set(changed)
        while proxy.outbox:
            server.hear(proxy)
    assert taken == {*names} - {"web5"}
    assert told < 16
    assert server.stream.acknowledged != server.marks[-1]


def test_what_was_refused_comes_again_after_a_pause_that_grows_and_at_once_when_it_changes(world: World) -> None:
    server, proxy = settled(world)
    world.clusters["web"].add("b")
    server.publish()
    pauses = []
    for _ in range(8):
        assert server.tell(proxy)
        proxy.take(refuses=True)
        server.hear(proxy)
        assert not server.tell(proxy)
        until = server.stream.next_try(server.now)
        assert until is not None
        pauses.append(round(until - server.now, 1))
        server.now = until
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    server.tell(proxy)
    proxy.take(refuses=True)
    server.hear(proxy)
    world.clusters["web"].add("c")
    server.publish()
    assert steps(server, proxy) == [(ENDPOINTS, ("web",), ())]


def test_one_busy_cluster_on_which_a_proxy_lags_does_not_hold_it_back(world: World) -> None:
    server, proxy = settled(world)
    for number in range(1, 50):
        world.clusters["api"].add(f"x{number}")
        server.publish()
        server.tell(proxy)
        world.clusters["api"].add(f"y{number}")
        server.publish()
        proxy.take()
        server.hear(proxy)
        server.tell(proxy)
        known = server.stream.acknowledged
        assert known is not None
        assert known.number >= server.marks[-1].number - 2


def test_clusters_that_come_and_go_without_an_end_do_not_hold_it_back() -> None:
    server, proxy = settled(World({"web": set()}))
    for number in range(1, 50):
        server.world.clusters = {"web": set(), f"job{number}": {f"j{number}"}}
        server.publish()
        server.tell(proxy)
        while proxy.inbox:
            proxy.take()
        while proxy.outbox:
            server.hear(proxy)
    known = server.stream.acknowledged
    assert known is not None
    assert known.number > 40
    assert len(proxy.held[CLUSTERS]) < 6


def test_a_proxy_that_holds_the_newest_of_everything_knows_each_newer_snapshot_at_once(world: World) -> None:
    server, proxy = settled(world)
    server.publish()
    assert not server.tell(proxy)
    assert server.stream.acknowledged == server.marks[-1]


def test_a_slow_proxy_is_told_of_a_kind_once_at_a_time(world: World) -> None:
    server, proxy = settled(world)
    for number in range(20):
        world.clusters["web"].add(f"r{number}")
        server.publish()
        server.tell(proxy)
    assert len(proxy.inbox) == 1
