"""What a proxy is said to know, against what a proxy that is played here really holds."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.proxies import KEEP, NAMES, NODE, Proxy, World, resources_of, version_of
from traffic.acks import Acks
from traffic.resources import CLUSTERS, Subscription


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
            replica = members[pick % len(members)]
            self.world.clusters[name].discard(replica)
            self.world.gone.add(replica)

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
        waiting = [subscription for subscription in self.proxy.held if subscription not in self.proxy.under_way]
        if self.proxy.held[CLUSTERS] is None:
            waiting = [CLUSTERS] if CLUSTERS in waiting else []  # it asks for nothing else before it has these
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
            for key in sorted(self.proxy.held, key=lambda subscription: (subscription.kind, subscription.name)):
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
        held = {replica for content in self.proxy.held.values() for replica in content or ()}
        assert not held & self.gone_by[mark.number]


TestAcks = AcksMachine.TestCase
TestAcks.settings = settings(stateful_step_count=40)
