"""What a proxy is told and what it holds, played without a proxy: messages wait on their way, in both directions."""

from collections import deque
from dataclasses import dataclass, field, replace

from traffic.envoy.envoy_names import ROUTE_CONFIGURATION
from traffic.resources import Resource, ResourceKind, Resources, Watermark, resource, together
from traffic.stream import DiscoveryRequest, Response, Stream

CLUSTERS, ENDPOINTS, ROUTES, *_ = ResourceKind
NAMES = ("web", "api", "web/preview")


@dataclass
class World:
    """What Postgres would say: the replicas of each cluster, and those that left for good."""

    clusters: dict[str, set[str]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    mood: int = 0
    setting: int = 0
    left: set[str] = field(default_factory=set)

    def resources(self) -> Resources:
        """The table: `mood` is a part of all endpoints, `setting` one of all clusters; no route leads to `left`."""
        routes = resource({"to": sorted(self.clusters.keys() - self.left)})
        return together(
            {
                CLUSTERS: {
                    name: replace(resource({"name": name, "setting": self.setting}), is_left=name in self.left)
                    for name in self.clusters
                },
                ENDPOINTS: {
                    name: resource(
                        {"of": name, "members": sorted(members), "mood": self.mood, "left": name in self.left}
                    )
                    for name, members in self.clusters.items()
                },
                ROUTES: {ROUTE_CONFIGURATION: routes},
            }
        )


@dataclass(frozen=True, slots=True)
class Made:
    """A table of this server."""

    resources: Resources
    watermark: Watermark


@dataclass(frozen=True, slots=True)
class Told:
    """A response with what it says."""

    response: Response[Made]
    content: dict[str, Resource]


@dataclass
class Proxy:
    """Envoy, as it behaves on a stream."""

    held: dict[ResourceKind, dict[str, Resource]] = field(default_factory=lambda: {kind: {} for kind in ResourceKind})
    inbox: deque[Told] = field(default_factory=deque)
    outbox: deque[DiscoveryRequest] = field(default_factory=deque)
    has_refused: bool = False

    def begin(self) -> None:
        """A new stream: it says what it holds. Without clusters it asks for no endpoints."""
        self.inbox.clear()
        self.outbox.clear()
        for kind in (CLUSTERS, ENDPOINTS, ROUTES) if self.held[CLUSTERS] else (CLUSTERS, ROUTES):
            names = () if kind is CLUSTERS else (ROUTE_CONFIGURATION,) if kind is ROUTES else tuple(self.held[CLUSTERS])
            versions = {name: found.version for name, found in self.held[kind].items()}
            self.outbox.append(DiscoveryRequest(kind, subscribe=names, holds=versions))

    def take(self, *, refuses: bool = False) -> None:
        """Take over the oldest response, or refuse it, and say so."""
        told = self.inbox.popleft()
        kind, nonce = told.response.kind, told.response.nonce
        if refuses:
            self.has_refused = True
            self.outbox.append(DiscoveryRequest(kind, nonce=nonce, error="poison"))
            return
        self.held[kind] |= told.content
        for name in told.response.removed:
            self.held[kind].pop(name, None)
            self.held[ENDPOINTS].pop(name, None)
        self.outbox.append(DiscoveryRequest(kind, nonce=nonce))
        if kind is CLUSTERS and (told.content or told.response.removed):
            self.outbox.append(DiscoveryRequest(ENDPOINTS, tuple(told.content), unsubscribe=told.response.removed))

    @property
    def replicas(self) -> set[str]:
        """Who may get a request."""
        return {member for found in self.held[ENDPOINTS].values() for member in found.content["members"]}

    @property
    def routed(self) -> set[str]:
        """The clusters that its routes lead to."""
        return {name for found in self.held[ROUTES].values() for name in found.content["to"]}


@dataclass
class Server:
    """The server's end of the stream, and the tables that it made."""

    world: World
    stream: Stream[Made] = field(default_factory=Stream)
    marks: list[Watermark] = field(default_factory=list)
    gone_by: dict[int, frozenset[str]] = field(default_factory=dict)
    now: float = 0.0
    current: Resources = field(default_factory=lambda: World().resources())

    def publish(self) -> None:
        """One more table."""
        resources, number = self.world.resources(), len(self.marks) + 1
        if self.current.version != resources.version:
            self.current = resources
        self.marks.append(Watermark(number, f"s{number}", resources.version))
        self.gone_by[number] = frozenset(self.world.gone)

    def tell(self, proxy: Proxy) -> bool:
        """Send what there is to say now; whether there was anything."""
        told = False
        while response := self.stream.next(Made(self.current, self.marks[-1]), self.now):
            of_kind = response.table.resources.by_kind[response.kind]
            proxy.inbox.append(Told(response, {name: of_kind[name] for name in response.updates}))
            told = True
        return told

    def hear(self, proxy: Proxy) -> None:
        """Hear the oldest word of the proxy."""
        self.stream.hear(proxy.outbox.popleft(), self.now)

    def settle(self, proxy: Proxy) -> None:
        """Until nobody has anything to say."""
        while self.tell(proxy) or proxy.inbox or proxy.outbox:
            while proxy.outbox:
                self.hear(proxy)
            if proxy.inbox:
                proxy.take()
            self.now += 10


def settled(world: World) -> tuple[Server, Proxy]:
    """A proxy that holds the table of this world."""
    server, proxy = Server(world), Proxy()
    server.publish()
    proxy.begin()
    server.settle(proxy)
    return server, proxy
