"""What a proxy is said to know, against what a proxy that is played here really holds."""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from traffic.acks import Acks
from traffic.resources import CLUSTERS, Resource, ResourceKind, Resources, Subscription, together

NODE = "edge"
ROUTES = Subscription(ResourceKind.ROUTES, "rollway")
NAMES = ("web", "api", "web/preview")
KEEP = 6

Content = frozenset[str]


def endpoints_of(name: str) -> Subscription:
    return Subscription(ResourceKind.ENDPOINTS, name)


@dataclass
class World:
    """What Postgres would say: the replicas of each cluster, and those that left for good."""

    clusters: dict[str, set[str]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    mood: int = 0

    def contents(self) -> dict[Subscription, Content]:
        own = {
            endpoints_of(name): frozenset({*members, f"mood {self.mood}"}) for name, members in self.clusters.items()
        }
        names = frozenset(self.clusters)
        return {CLUSTERS: names, ROUTES: frozenset(one for one in names if "preview" in one), **own}


def version_of(content: Content) -> str:
    return "+".join(sorted(content)) or "nothing"


def resources_of(contents: dict[Subscription, Content]) -> Resources:
    return together({key: Resource(version_of(content), b"") for key, content in contents.items()})


@dataclass
class Proxy:
    """Envoy: what it holds, and the answer that is under way for each subscription."""

    held: dict[Subscription, Content | None] = field(default_factory=lambda: {CLUSTERS: None})
    under_way: dict[Subscription, Content] = field(default_factory=dict)

    def take(self, key: Subscription) -> None:
        content = self.under_way.pop(key)
        self.held[key] = content
        if key == CLUSTERS:
            wanted = {ROUTES, CLUSTERS, *(endpoints_of(name) for name in content)}
            self.held = {one: self.held.get(one) for one in wanted}
            self.under_way = {one: content for one, content in self.under_way.items() if one in wanted}


class AcksMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.world = World({"web": set()})
        self.proxy = Proxy()
        self.count = 0
        self.server_begins()

    @rule()
    def server_begins(self) -> None:
        self.acks = Acks(KEEP)
        self.gone_by: dict[int, frozenset[str]] = {}
        self.proxy.under_way.clear()
        self.publish()

    @rule()
    def proxy_begins(self) -> None:
        self.proxy = Proxy()

    @rule(name=st.sampled_from(NAMES))
    def replica_comes(self, name: str) -> None:
        if name in self.world.clusters:
            self.count += 1
            self.world.clusters[name].add(f"r{self.count}")

    @rule(name=st.sampled_from(NAMES), pick=st.integers(0, 9))
    def replica_leaves(self, name: str, pick: int) -> None:
        members = sorted(self.world.clusters.get(name, ()))
        if members:
            one = members[pick % len(members)]
            self.world.clusters[name].discard(one)
            self.world.gone.add(one)

    @rule(mood=st.integers(0, 1))
    def health_changes_and_changes_back(self, mood: int) -> None:
        self.world.mood = mood

    @rule(name=st.sampled_from(NAMES))
    def cluster_comes_or_goes(self, name: str) -> None:
        members = self.world.clusters.pop(name, None)
        if members is None:
            self.world.clusters[name] = set()
        else:
            self.world.gone |= members

    @rule()
    def publish(self) -> None:
        self.contents = self.world.contents()
        mark = self.acks.publish(resources_of(self.contents), f"seen {len(self.gone_by)}")
        self.gone_by[mark.number] = frozenset(self.world.gone)

    @rule(pick=st.integers(0, 9))
    def poll(self, pick: int) -> None:
        waiting = [one for one in self.proxy.held if one not in self.proxy.under_way]
        if self.proxy.held[CLUSTERS] is None:
            waiting = [one for one in waiting if one == CLUSTERS]  # it asks for nothing else before it has these
        if waiting:
            self.ask(waiting[pick % len(waiting)])

    def ask(self, key: Subscription) -> None:
        held = self.proxy.held[key]
        self.acks.polled(NODE, key, "" if held is None else version_of(held))
        content = self.contents.get(key)
        if content is not None and content != held:
            self.proxy.under_way[key] = content

    @precondition(lambda self: self.proxy.under_way)
    @rule(pick=st.integers(0, 9), refused=st.booleans())
    def answer_arrives(self, pick: int, refused: bool) -> None:  # noqa: FBT001
        key = list(self.proxy.under_way)[pick % len(self.proxy.under_way)]
        if refused:
            del self.proxy.under_way[key]
        else:
            self.proxy.take(key)

    @rule()
    def polls_stop_lagging(self) -> None:
        """Nothing changes for a while: two rounds later the proxy knows the newest table."""
        self.proxy.under_way.clear()
        for _ in range(3):
            for key in sorted(self.proxy.held, key=lambda one: (one.kind, one.name)):
                if key in self.proxy.held:
                    self.ask(key)
                    if key in self.proxy.under_way:
                        self.proxy.take(key)
        mark = self.acks.watermark(NODE)
        assert mark is not None
        assert mark.number == max(self.gone_by)

    @invariant()
    def what_is_gone_by_the_watermark_is_held_nowhere(self) -> None:
        mark = self.acks.watermark(NODE)
        if mark is None:
            return
        held = {one for content in self.proxy.held.values() for one in content or ()}
        assert not held & self.gone_by[mark.number]


TestAcks = AcksMachine.TestCase
TestAcks.settings = settings(stateful_step_count=40)


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
