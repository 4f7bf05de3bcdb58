"""Listeners and certificates on a stream: which are told, which are taken away, and who need not ask for any."""

from dataclasses import dataclass, field

from tests.support.proxies.proxies import CLUSTERS, ENDPOINTS, ROUTES, Made
from traffic.envoy.envoy_names import ROUTE_CONFIGURATION
from traffic.resources import ResourceKind, Resources, Watermark, resource, together
from traffic.stream import DiscoveryRequest, Stream

LISTENERS, SECRETS = ResourceKind.LISTENERS, ResourceKind.SECRETS


def table(**keys: str) -> Resources:
    """One with these certificates, and a listener that shows them while there are any."""
    return together(
        {
            CLUSTERS: {},
            ENDPOINTS: {},
            ROUTES: {ROUTE_CONFIGURATION: resource({})},
            LISTENERS: {"tls": resource({"shows": sorted(keys)})} if keys else {},
            SECRETS: {name: resource({"key": key}) for name, key in keys.items()},
        }
    )


@dataclass
class Talk:
    """A stream whose proxy takes over what it is told, and what it was told."""

    stream: Stream[Made] = field(default_factory=Stream)
    number: int = 0
    now: Made = field(default_factory=lambda: Made(table(), Watermark(0, "", "")))

    def ask(self, kind: ResourceKind, *names: str) -> None:
        self.stream.hear(DiscoveryRequest(kind, subscribe=names), 0)

    def publish(self, resources: Resources) -> None:
        self.number += 1
        self.now = Made(resources, Watermark(self.number, f"s{self.number}", resources.version))

    def told(self) -> list[tuple[ResourceKind, tuple[str, ...], tuple[str, ...]]]:
        said = []
        while response := self.stream.next(self.now, 0):
            said.append((response.kind, response.updates, response.removed))
            self.stream.hear(DiscoveryRequest(response.kind, nonce=response.nonce), 0)
        return said

    @property
    def knows(self) -> int:
        return self.stream.acknowledged.number if self.stream.acknowledged else 0


def begun(*kinds: ResourceKind) -> Talk:
    talk = Talk()
    talk.publish(table())
    for kind in (CLUSTERS, *kinds):
        talk.ask(kind)
    talk.ask(ENDPOINTS)
    talk.ask(ROUTES, ROUTE_CONFIGURATION)
    return talk


def test_a_proxy_waits_for_no_listener_where_there_is_none() -> None:
    talk = begun(LISTENERS)
    assert talk.told() == [(CLUSTERS, (), ()), (ROUTES, (ROUTE_CONFIGURATION,), ()), (LISTENERS, (), ())]
    assert talk.knows == 1


def test_certificates_are_told_to_who_asks_for_them_by_name_and_a_renewed_one_alone() -> None:
    talk = begun(LISTENERS)
    talk.told()
    talk.publish(table(a="1", b="1"))
    assert talk.told() == [(LISTENERS, ("tls",), ())]
    talk.ask(SECRETS, "a")
    assert talk.told() == [(SECRETS, ("a",), ())]
    talk.publish(table(a="2", b="2"))
    assert talk.told() == [(SECRETS, ("a",), ())]
    talk.publish(table())
    assert talk.told() == [(LISTENERS, (), ("tls",))]
    assert talk.knows == talk.number


def test_a_proxy_of_an_older_bootstrap_asks_for_none_and_knows_the_table_all_the_same() -> None:
    talk = begun()
    talk.told()
    talk.publish(table(a="1"))
    assert (talk.told(), talk.knows) == ([], 2)
