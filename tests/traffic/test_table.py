"""From a snapshot to what proxies should know."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.model.states import RouteStatus, TrafficStatus
from domain.traffic.snapshot import Entrance, EntranceKind
from tests.support.pictures.traffic_samples import coming, deployment, hosts, prefixes, route, snapshot
from traffic.routing_table import Prefix, Service, derive_table, read_address


def only(*routes: object, **settings: object) -> Service:
    (service,) = derive_table(snapshot(deployment(*routes, **settings))).services  # type: ignore[arg-type]
    return service


def numbers(endpoints: tuple[object, ...]) -> list[int]:
    return [endpoint.route_id.int for endpoint in endpoints]  # type: ignore[attr-defined]


def test_who_is_in_traffic_is_published_whatever_its_health() -> None:
    service = only(route(1), route(2, status=RouteStatus.UNHEALTHY), route(3, status=RouteStatus.DEGRADED))
    assert numbers(service.live) == [1, 2, 3]
    assert [endpoint.status for endpoint in service.live] == [
        RouteStatus.HEALTHY,
        RouteStatus.UNHEALTHY,
        RouteStatus.DEGRADED,
    ]
    assert service.preview == ()


def test_a_preview_is_healthy_of_the_coming_revision_and_not_parked() -> None:
    service = only(
        route(1),
        coming(2),
        coming(3, status=RouteStatus.UNHEALTHY),
        coming(4, is_parked=True),
        coming(5, is_candidate=False),
        coming(6, traffic=TrafficStatus.ACTIVE),
    )
    assert (numbers(service.live), numbers(service.preview)) == ([1, 6], [2])


def test_a_ratio_becomes_a_weight_from_1_to_100_and_0_means_no_requests() -> None:
    service = only(route(1), route(2, ratio=0.25), route(3, ratio=0.001), route(4, ratio=0))
    assert [endpoint.weight for endpoint in service.live] == [100, 25, 1]
    assert [endpoint.weight for endpoint in only(route(1, ratio=0), route(2, ratio=0)).live] == [1, 1]


def test_host_names_are_in_small_letters_and_prefixes_end_with_a_slash() -> None:
    service = only(entrances=(*hosts("Web", "web", "a.example"), *prefixes("/web", "/web/", "/v1/x", "/")))
    assert service.hosts == ("web", "a.example")
    assert service.preview_hosts == ("preview.web", "preview.a.example")
    assert service.prefixes == (Prefix("/web/", strip=True), Prefix("/v1/x/", strip=True), Prefix("/", strip=True))


def test_a_host_name_may_stand_for_all_below_it_but_not_for_a_preview() -> None:
    table = derive_table(snapshot(deployment(entrances=hosts("*.example.com", "web", "*", "a.*.b", "a_b"))))
    assert table.services[0].hosts == ("*.example.com", "web")
    assert table.services[0].preview_hosts == ("preview.web",)
    assert len(table.faults) == 3


def test_what_would_be_reached_twice_stays_with_the_first_and_is_said() -> None:
    table = derive_table(
        snapshot(
            deployment(name="a", entrances=(*hosts("shop"), *prefixes("/shop/"))),
            deployment(name="b", entrances=(*hosts("SHOP", "preview.shop"), *prefixes("/shop"))),
        )
    )
    first, second = table.services
    assert (first.hosts, first.preview_hosts, len(first.prefixes)) == (("shop",), (), 1)
    assert (second.hosts, second.prefixes) == (("preview.shop",), ())
    assert table.faults == (
        "b: host name 'shop' belongs to a already, so it is left out",
        "b: path prefix '/shop/' belongs to a already, so it is left out",
    )


def test_a_replica_that_is_not_at_an_ip_address_is_left_out_and_said() -> None:
    table = derive_table(snapshot(deployment(route(1), route(2, "host-7:80"))))
    assert numbers(table.services[0].live) == [1]
    (fault,) = table.faults
    assert "host-7:80" in fault


@pytest.mark.parametrize(
    ("address", "read"),
    [("10.0.0.1:80", ("10.0.0.1", 80)), ("[::1]:65535", ("::1", 65535)), ("[fe80::0:1]:1", ("fe80::1", 1))],
)
def test_addresses_that_can_be_read(address: str, read: tuple[str, int]) -> None:
    assert read_address(address) == read


@pytest.mark.parametrize("address", ["", "web:80", "10.0.0.1", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:²", "::1:80x"])
def test_addresses_that_cannot(address: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        read_address(address)


_HOSTS = st.sampled_from(["a", "A", "preview.a", "preview.preview.a", "b", "*", "", "b:80", "preview.b", "a_b"])
_PREFIXES = st.sampled_from(["/", "", "/a", "/a/", "//a//", "/a/b", "/a b/", "/ä/", "a"])


@given(
    st.lists(
        st.lists(
            st.builds(Entrance, st.just(EntranceKind.HOST), _HOSTS)
            | st.builds(Entrance, st.just(EntranceKind.PREFIX), _PREFIXES),
            max_size=6,
        ),
        max_size=4,
    )
)
def test_no_host_name_and_no_prefix_occurs_twice(entrances: list[list[Entrance]]) -> None:
    table = derive_table(
        snapshot(*(deployment(name=f"d{number}", entrances=tuple(own)) for number, own in enumerate(entrances)))
    )
    domains = [host for service in table.services for host in (*service.hosts, *service.preview_hosts)]
    assert len(domains) == len(set(domains))
    assert "*" not in domains
    values = [prefix.value for service in table.services for prefix in service.prefixes]
    assert len(values) == len(set(values))
