"""What a proxy is told of and what it holds, played without a proxy."""

from dataclasses import dataclass, field

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
        return {CLUSTERS: names, ROUTES: frozenset(name for name in names if "preview" in name), **own}


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
            self.held = {subscription: self.held.get(subscription) for subscription in wanted}
            self.under_way = {
                subscription: content for subscription, content in self.under_way.items() if subscription in wanted
            }
