"""Streams of proxies that are played by hand, to a real api process."""

from collections.abc import Callable

import grpc
import httpx
import pytest

from api.proxies.protobuf import TYPE_URLS, DiscoveryRequest
from db.connection.transactions import transaction
from tests.support.people.asking import page
from tests.support.proxies import plain_http
from tests.support.proxies.edge import EdgeRoutes
from tests.support.proxies.streaming import Node, Told, live_servers
from tests.support.rows.deployments import Made, make_deployment
from tests.support.stack.server_process import Process
from tests.support.stack.waiting import eventually
from traffic.resources import ResourceKind
from traffic.stream import MOST_NAMES

CLUSTERS, ENDPOINTS, ROUTES, *_ = ResourceKind


def replicas_of(told: Told, name: str) -> int:
    return len(told.resources[name]["endpoints"][0]["lb_endpoints"])


def metric(api: Process, name: str) -> float:
    text = plain_http.get(f"{api.url}/metrics").text
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith(f"{name} ")))


def until(node: Node, is_it: Callable[[Told], bool]) -> Told:
    """Take over what comes, up to what is looked for; that is not taken over."""
    while not is_it(told := node.hear()):
        node.accept(told)
    return told


def test_a_proxy_is_told_at_once_and_then_of_what_changes(
    shared_server: tuple[EdgeRoutes, Process], web: Made, node: Node
) -> None:
    node.ask(ENDPOINTS, web.name)
    first = node.hear()
    assert (set(first.resources), replicas_of(first, web.name)) == ({web.name}, 3)
    node.accept(first)
    shared_server[0].drain(web.routes[0])
    assert replicas_of(node.hear(), web.name) == 2


def test_a_drain_waits_until_the_proxy_has_taken_the_answer_over(routes: EdgeRoutes, api: Process) -> None:
    web = make_deployment(routes.engine, "■■", n=1)
    routes.tell()
    eventually(lambda: live_servers(api, "web") == 2)
    with Node(api) as node:
        node.take_all()
        routes.drain(web.routes[0])
        told = node.hear()
        eventually(lambda: page(api.url, "/v1/traffic").json()["proxies"][0]["is_current"] is False)
        assert not routes.released(web.routes[0]), "it was told, and may not have taken it over"
        node.accept(told)
        eventually(lambda: routes.released(web.routes[0]))


def test_what_a_proxy_says_before_a_restarted_server_has_read_its_first_table_counts(
    routes: EdgeRoutes, api: Process
) -> None:
    make_deployment(routes.engine, "■■", n=1)
    routes.tell()
    eventually(lambda: live_servers(api, "web") == 2)
    with Node(api) as node:
        node.take_all()
        api.end(kill=True)
        with transaction(routes.engine) as connection:
            connection.execute("LOCK TABLE entrances IN ACCESS EXCLUSIVE MODE")
            api.begin()
            eventually(lambda: _status(f"{api.url}/healthz") == 503)
            node.open()
            for kind, *names in ((CLUSTERS,), (ENDPOINTS, "web"), (ROUTES, "rollway")):
                node.ask(kind, *names)
            eventually(lambda: metric(api, "rollway_proxy_streams") == 1)
        eventually(lambda: _status(f"{api.url}/healthz") == 200)
        eventually(lambda: [proxy["is_current"] for proxy in page(api.url, "/v1/traffic").json()["proxies"]] == [True])


def _status(url: str) -> int | None:
    try:
        return plain_http.get(url).status_code
    except httpx.TransportError:
        return None


def test_what_a_proxy_refuses_is_told_again_and_counted_and_named(
    shared_server: tuple[EdgeRoutes, Process], web: Made, node: Node
) -> None:
    before = metric(shared_server[1], "rollway_refused_answers_total")
    node.ask(ENDPOINTS, web.name)
    node.refuse(node.hear(), "the port is odd")
    again = node.hear()
    assert set(again.resources) == {web.name}
    node.refuse(again, "the port is odd")
    eventually(lambda: metric(shared_server[1], "rollway_refused_answers_total") == before + 2)
    assert "the port is odd" in shared_server[1].log.read_text()
    shared_server[0].drain(web.routes[1])  # something else is tried at once
    assert replicas_of(until(node, lambda told: replicas_of(told, web.name) == 2), web.name) == 2


def test_a_proxy_that_comes_back_with_what_another_server_told_it_is_told_the_newest(web: Made, node: Node) -> None:
    node.held[ENDPOINTS] = {web.name: "told-by-another"}
    node.ask(ENDPOINTS, web.name)
    assert set(node.hear().resources) == {web.name}


def test_a_proxy_that_comes_back_with_what_it_has_is_told_nothing_of_it(
    shared_server: tuple[EdgeRoutes, Process], web: Made, node: Node
) -> None:
    node.take_all()
    node.open()
    node.ask(CLUSTERS)
    node.ask(ENDPOINTS, *node.held[CLUSTERS])
    node.ask(ROUTES, "rollway")
    shared_server[0].drain(web.routes[0])
    assert until(node, lambda told: told.kind is ENDPOINTS).versions.keys() == {web.name}


def test_the_stream_of_a_proxy_that_hangs_up_ends_at_once(
    shared_server: tuple[EdgeRoutes, Process], web: Made, node: Node
) -> None:
    def streams() -> float:
        return metric(shared_server[1], "rollway_proxy_streams")

    eventually(lambda: streams() == 0, what="those of the tests before to have ended")
    node.ask(ENDPOINTS, web.name)
    node.hear()
    assert streams() == 1
    node.close()
    eventually(lambda: streams() == 0, 10, "its end, sooner than by a lost connection")


@pytest.mark.parametrize(
    "body",
    [b"\xff\xff\xff", b"", DiscoveryRequest(type_url=TYPE_URLS[CLUSTERS]).SerializeToString()],
)
def test_what_is_no_request_ends_its_own_stream_alone(
    shared_server: tuple[EdgeRoutes, Process], web: Made, node: Node, body: bytes
) -> None:
    node.ask(ENDPOINTS, web.name)
    node.accept(node.hear())
    with Node(shared_server[1]) as other, pytest.raises(grpc.RpcError):
        other.send_bytes(body)
    shared_server[0].drain(web.routes[0])
    assert replicas_of(node.hear(), web.name) == 2


def test_a_request_that_is_too_large_is_refused(node: Node) -> None:
    node.ask(ENDPOINTS, *[f"{number:0100}" for number in range(50_000)])
    with pytest.raises(grpc.RpcError) as refused:
        node.hear()
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_stream_that_names_more_and_more_ends_and_no_other_does(
    shared_server: tuple[EdgeRoutes, Process], web: Made, node: Node
) -> None:
    node.ask(ENDPOINTS, web.name)
    node.accept(node.hear())
    with Node(shared_server[1]) as endless:
        for part in range(3):
            endless.ask(ENDPOINTS, *[f"{part}-{number}" for number in range(MOST_NAMES // 3 + 1)])
        with pytest.raises(grpc.RpcError) as refused:
            endless.hear()
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert refused.value.details() == "A stream may name 50,000 endpoints at most, and this one names more."
    shared_server[0].drain(web.routes[0])
    assert replicas_of(node.hear(), web.name) == 2


def test_kinds_that_nobody_knows_are_left_alone(web: Made, node: Node) -> None:
    node.ask(ENDPOINTS, web.name)
    node.accept(node.hear())
    request = DiscoveryRequest(type_url="type.googleapis.com/envoy.service.runtime.v3.Runtime")
    node.say_raw(request)
    node.say(ENDPOINTS, resource_names_subscribe=(web.name,))
    assert set(node.hear().resources) == {web.name}
