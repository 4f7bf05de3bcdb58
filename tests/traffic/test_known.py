"""What a proxy is said to know, and what it is told in which order, against a proxy that is played here."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.proxies.proxies import CLUSTERS, ENDPOINTS, NAMES, Proxy, Server, World


class StreamMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.world = World({"web": set()})
        self.proxy = Proxy()
        self.count = 0
        self.server_begins()

    @rule()
    def server_begins(self) -> None:
        self.server = Server(self.world)
        self.server.publish()
        self.proxy.begin()

    @rule()
    def proxy_begins(self) -> None:
        self.proxy = Proxy()
        self.server_begins()

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

    @rule(mood=st.integers(0, 1), setting=st.integers(0, 1))
    def something_changes_and_changes_back(self, mood: int, setting: int) -> None:
        self.world.mood, self.world.setting = mood, setting

    @rule(name=st.sampled_from(NAMES))
    def cluster_comes_or_goes(self, name: str) -> None:
        members = self.world.clusters.pop(name, None)
        if members is None:
            self.world.clusters[name] = set()
        else:
            self.world.gone |= members

    @rule(name=st.sampled_from(NAMES))
    def cluster_is_left_or_asked_again(self, name: str) -> None:
        self.world.left ^= {name}

    @rule()
    def publish(self) -> None:
        self.server.publish()

    @rule()
    def server_speaks(self) -> None:
        self.server.now += 0.05
        self.server.tell(self.proxy)

    @precondition(lambda self: self.proxy.outbox)
    @rule()
    def server_hears(self) -> None:
        self.server.hear(self.proxy)

    @precondition(lambda self: self.proxy.inbox)
    @rule(refuses=st.sampled_from((False, False, False, True)))
    def proxy_hears(self, refuses: bool) -> None:  # noqa: FBT001
        self.proxy.take(refuses=refuses)

    @rule()
    def all_goes_well_for_a_while(self) -> None:
        """Nothing changes: in the end the proxy holds the newest table, and is known to."""
        self.publish()
        self.server.settle(self.proxy)
        assert self.server.stream.acknowledged == self.server.marks[-1]
        held = {
            kind: {name: found.version for name, found in self.proxy.held[kind].items()} for kind in self.proxy.held
        }
        table = self.server.current.by_kind
        newest = {kind: {name: found.version for name, found in table[kind].items()} for kind in table}
        assert held == {**{kind: {} for kind in held}, **newest}

    @invariant()
    def what_is_gone_by_the_watermark_is_held_nowhere(self) -> None:
        mark = self.server.stream.acknowledged
        assert mark is None or not self.proxy.replicas & self.server.gone_by[mark.number]

    @invariant()
    def every_route_leads_to_a_cluster_with_endpoints(self) -> None:
        if not self.proxy.has_refused:
            assert self.proxy.routed <= self.proxy.held[CLUSTERS].keys() & self.proxy.held[ENDPOINTS].keys()


TestStream = StreamMachine.TestCase
TestStream.settings = settings(stateful_step_count=60)
