"""Pages of one's own for callers whom no replica answers, from a real Envoy; what a replica answers stays its own."""

import socket

import pytest
from psycopg.types.json import Jsonb

from domain.commands.deployment_commands import SetTraffic
from domain.traffic.snapshot import RequestRules, stored_together
from tests.support.pictures.pictures import PROVISIONING
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import replicas
from tests.support.rows.deployments import Made, write
from tests.support.stack.waiting import eventually
from tests.support.workers.probed import says

PAGES = (("502", "<p>nonsense</p>"), ("503", '<h1>Back "soon", 100 %</h1>\n'), ("504", "<p>too slow</p>"))


def with_pages(edge: Edge, made: Made) -> str:
    """Returns the path of the deployment."""
    stored = Jsonb(stored_together(RequestRules(pages=PAGES)))
    query = "UPDATE deployments SET rules = %s, request_timeout_seconds = 1 WHERE id = %s"
    write(edge.routes.engine, query, stored, made.id)
    edge.routes.tell()
    return f"/{made.name}/"


def refusing() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def test_who_finds_no_replica_gets_the_page_and_who_finds_one_its_answer(envoy_edge: Edge) -> None:
    with replicas("pages") as (replica,):
        web = envoy_edge.make("■|", replica, status=PROVISIONING, policy={"strategy": "recreate"})
        other = envoy_edge.make("■", refusing())
        path = with_pages(envoy_edge, web)
        envoy_edge.wait_for(path, 200)
        envoy_edge.routes.drain(*web.routes)
        envoy_edge.wait_for(path, 503)
        eventually(lambda: envoy_edge.ask(path).text == PAGES[1][1], what="the page, which comes with a later message")
        assert envoy_edge.ask(path).headers["content-type"] == "text/html; charset=utf-8"
        assert envoy_edge.ask(path, "HEAD").content == b""
        grpc = envoy_edge.ask(path, "POST", **{"content-type": "application/grpc"})
        assert "soon" not in grpc.headers.get("grpc-message", "") + grpc.text
        envoy_edge.wait_for(f"/{other.name}/", 503)
        assert "soon" not in envoy_edge.ask(f"/{other.name}/").text


def test_a_replica_that_refuses_or_is_too_slow_has_its_page_and_its_own_503_stays(envoy_edge: Edge) -> None:
    with replicas("slow") as (replica,):
        web, refuses = envoy_edge.make("■", replica), envoy_edge.make("■", refusing())
        path = with_pages(envoy_edge, web)
        envoy_edge.wait_for(path, 200)
        replica.status = 503
        envoy_edge.wait_for(path, 503)
        assert envoy_edge.ask(path).json()["replica"] == "slow"
        replica.seconds = 2
        answer = eventually(lambda: found if (found := envoy_edge.ask(path, "POST")).status_code == 504 else None)
        assert answer.text == PAGES[2][1]
        path = with_pages(envoy_edge, refuses)
        eventually(lambda: envoy_edge.ask(path).text == PAGES[1][1])


def test_what_is_no_http_has_its_page(envoy_edge: Edge) -> None:
    with says(b"what?\r\n\r\n") as address:
        path = with_pages(envoy_edge, envoy_edge.make("■", address))
        eventually(lambda: envoy_edge.ask(path, "POST").text == PAGES[0][1])
        assert envoy_edge.ask(path, "POST").status_code == 502


@pytest.mark.parametrize("pages", [{"500": "x"}, {"503": " "}, {"503": "x" * 16_385}, "down.html"])
def test_a_page_for_nothing_or_of_nothing_is_refused(pages: object) -> None:
    with pytest.raises(ValueError, match="pages"):
        SetTraffic.model_validate({"deployment": "web", "request_id": "1", "pages": pages})
