"""What one proxy is said to know: cases that once went wrong."""

from tests.support.proxies import KEEP, NODE, ROUTES, World, endpoints_of, resources_of, version_of
from traffic.acks import Acks
from traffic.resources import CLUSTERS


def test_one_busy_cluster_on_which_a_proxy_lags_does_not_hold_it_back() -> None:
    acks, world = Acks(), World({"web": {"a"}, "api": {"x"}})
    acks.publish(resources_of(world.contents()), "s0")
    for key, content in world.contents().items():
        acks.polled(NODE, key, version_of(content))
    for number in range(1, 50):
        lagging = world.contents()[endpoints_of("api")]
        world.clusters["api"].add(f"x{number}")
        acks.publish(resources_of(world.contents()), f"s{number}")
        acks.polled(NODE, endpoints_of("api"), version_of(lagging))
        mark = acks.watermark(NODE)
        assert mark is not None
        assert mark.seen == f"s{number - 1}"


def test_a_proxy_that_holds_the_newest_of_everything_knows_each_newer_snapshot_at_once() -> None:
    acks, contents = Acks(), World({"web": {"a"}}).contents()
    acks.publish(resources_of(contents), "s0")
    for key, content in contents.items():
        acks.polled(NODE, key, version_of(content))
    acks.publish(resources_of(contents), "s1")
    mark = acks.watermark(NODE)
    assert mark is not None
    assert mark.seen == "s1"


def test_a_server_that_began_a_moment_ago_claims_nothing_until_it_heard_of_every_cluster() -> None:
    acks, contents = Acks(), World({"web": {"a"}, "api": set()}).contents()
    acks.publish(resources_of(contents), "s0")
    for key in (CLUSTERS, ROUTES, endpoints_of("web")):
        acks.polled(NODE, key, version_of(contents[key]))
        assert acks.watermark(NODE) is None
    acks.polled(NODE, endpoints_of("api"), version_of(contents[endpoints_of("api")]))
    assert acks.watermark(NODE) is not None


def remembered(acks: Acks) -> int:
    """How many entries it holds, in all that it holds."""
    nested = (acks._last_in, acks._held)
    return sum(len(held) for held in (acks._tables, acks._replaced, acks._needed)) + sum(
        len(versions) for held in nested for versions in held.values()
    )


def test_what_is_remembered_does_not_grow() -> None:
    acks, world = Acks(KEEP), World({"web": set()})
    sizes = []
    for number in range(200):
        world.clusters["web"] = {f"r{number}"}
        world.clusters.pop(f"job{number - 1}", None)
        world.clusters[f"job{number}"] = set()
        contents = world.contents()
        acks.publish(resources_of(contents), f"s{number}")
        for key, content in contents.items():
            acks.polled(NODE, key, version_of(content))
        sizes.append(remembered(acks))
    assert sizes[-1] == sizes[50]
    assert acks.watermark(NODE) is not None
