"""What a deployment says of its requests: who may look at a coming revision, how long a request may be silent."""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import StreamRequestHandler

from domain.model.states import DeploymentLifecycleStatus, DeploymentSubStep, Lifecycle
from tests.support.proxies.edge import Edge
from tests.support.proxies.own_servers import own_server
from tests.support.proxies.web_replicas import replicas
from tests.support.rows.deployments import Made, write
from tests.support.stack.waiting import eventually

DEPLOYING = DeploymentLifecycleStatus(Lifecycle.DEPLOYING, DeploymentSubStep.PROVISIONING)
CLOSE = "Connection: close"
PREVIEW = {"x-rollway-preview": "true"}


def test_a_deployment_without_a_preview_shows_its_coming_revision_to_nobody(envoy_edge: Edge) -> None:
    with replicas("blue", "green") as (blue, green):
        web = envoy_edge.make("■|□", blue, green, name="shy", status=DEPLOYING)
        eventually(lambda: envoy_edge.ask("/shy/", **PREVIEW).status_code == 200)
        write(envoy_edge.routes.engine, "UPDATE deployments SET preview = false WHERE id = %s", web.id)
        envoy_edge.routes.tell()
        eventually(lambda: envoy_edge.ask("/shy/", **PREVIEW).status_code == 503)
        assert envoy_edge.ask("/", host="preview.shy").status_code == 503
        assert envoy_edge.ask("/shy/").json()["replica"] == "blue"


def test_clients_that_speak_http_1_0_are_answered(envoy_edge: Edge) -> None:
    with replicas("here") as (here,):
        name = envoy_edge.make("■", here).name
        eventually(lambda: envoy_edge.ask(f"/{name}/").status_code == 200)
        for host in (b"", b"Host: anything\r\n"):
            with socket.create_connection(("127.0.0.1", envoy_edge.envoy.port), timeout=10) as client:
                client.sendall(b"GET /%s/ HTTP/1.0\r\n%s\r\n" % (name.encode(), host))
                answer = b""
                while more := client.recv(4096):
                    answer += more
            assert b" 200 " in answer.partition(b"\r\n")[0]
            assert b'"replica": "here"' in answer


def sent(edge: Edge, *lines: str) -> bytes:
    """The answer to a request of these lines, which asks for nothing after it."""
    with socket.create_connection(("127.0.0.1", edge.envoy.port), timeout=10) as client:
        client.sendall("\r\n".join((*lines, "", "")).encode())
        answer = b""
        while more := client.recv(4096):
            answer += more
        return answer


def test_a_request_that_names_two_hosts_is_refused(envoy_edge: Edge) -> None:
    with replicas("here") as (here,):
        name = envoy_edge.make("■", here).name
        eventually(lambda: envoy_edge.ask(f"/{name}/").status_code == 200)
        before = here.served.total()
        for hosts in (("a.example.com", "b.example.com"), (name, name), ("a.example.com,b.example.com",)):
            answer = sent(envoy_edge, f"GET /{name}/ HTTP/1.1", *(f"Host: {host}" for host in hosts), CLOSE)
            assert answer.startswith(b"HTTP/1.1 400 ")
        assert here.served.total() == before


def test_trailers_of_http_1_1_reach_nobody_and_a_request_has_a_name_of_envoy_s_own(envoy_edge: Edge) -> None:
    """Of trailers nothing but themselves is lost. By the name Envoy chooses the side of a canary, so no caller may."""
    with trailing() as (address, heads):
        name = envoy_edge.make("■", address).name
        eventually(lambda: envoy_edge.ask(f"/{name}/").status_code == 200)
        heads.clear()
        given = "X-Request-Id: asked-by-me/7"
        named = sent(envoy_edge, f"GET /{name}/ HTTP/1.1", "Host: a", given, "TE: trailers", CLOSE)
        assert re.search(rb"x-request-id: [0-9a-f-]{36}\r\n", heads[-1].lower())
        assert b"whole" in named
        assert b"x-sum: 7" not in named.lower()
        post = (f"POST /{name}/ HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", CLOSE)
        assert b"whole" in sent(envoy_edge, *post, "", "2", "me", "0", "X-Sum: 9")
        assert b"2\r\nme\r\n0\r\n" in heads[-1]
        assert b"x-sum" not in heads[-1].lower()


@contextmanager
def trailing() -> Iterator[tuple[str, list[bytes]]]:
    """A replica whose answers have a trailer, and the heads of the requests that it got."""
    heads: list[bytes] = []

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            head = b""
            while (line := self.rfile.readline()) not in (b"\r\n", b""):
                head += line
            while b"chunked" in head.lower() and (line := self.rfile.readline()) not in (b"\r\n", b""):
                head += line
            heads.append(head)
            self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n")
            self.wfile.write(b"Connection: close\r\n\r\n")
            self.wfile.write(b"5\r\nwhole\r\n0\r\nX-Sum: 7\r\n\r\n")

    with own_server(Handler) as server:
        yield server.address, heads


def answered(edge: Edge, web: Made, status: int) -> None:
    eventually(lambda: edge.ask(f"/{web.name}/").status_code == status, what=f"an answer {status}")


def test_a_request_may_be_silent_for_as_long_as_its_deployment_allows(envoy_edge: Edge) -> None:
    with replicas("silent") as (silent,):
        web = envoy_edge.make("■", silent)
        answered(envoy_edge, web, 200)
        silent.seconds = 0.5
        assert envoy_edge.ask(f"/{web.name}/").status_code == 200
        write(envoy_edge.routes.engine, "UPDATE deployments SET idle_timeout_seconds = 0.2 WHERE id = %s", web.id)
        envoy_edge.routes.tell()
        answered(envoy_edge, web, 504)
        write(envoy_edge.routes.engine, "UPDATE deployments SET idle_timeout_seconds = NULL WHERE id = %s", web.id)
        envoy_edge.routes.tell()
        answered(envoy_edge, web, 200)
