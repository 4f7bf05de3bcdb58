"""Settings of Envoy that callers notice, chosen otherwise than Envoy's defaults, each tried with a real Envoy."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from socketserver import StreamRequestHandler

import pytest

from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge
from tests.support.proxies.own_servers import own_server
from tests.support.proxies.web_replicas import Replica, replicas
from tests.support.stack.waiting import eventually


@pytest.fixture
def replica() -> Iterator[Replica]:
    with replicas("here") as (here,):
        yield here


def status_line(edge: Edge, name: str, *lines: str) -> str:
    """The first line of the answer to a GET with these lines."""
    with socket.create_connection(("127.0.0.1", edge.envoy.port), timeout=10) as connection:
        head = "\r\n".join((f"GET /{name}/ HTTP/1.1", f"Host: {name}", "Connection: close", *lines))
        connection.sendall(f"{head}\r\n\r\n".encode())
        return connection.makefile(encoding="latin-1").readline().strip()


@pytest.mark.parametrize(
    "upgrade", ["TLS/1.2", "TLS/1.0, TLS/1.2", "h2c", "h2,h2c", "foo", "w", "we", "webdav", "tls/1.3", "WEBTRANSPORT"]
)
def test_a_client_that_offers_another_protocol_is_answered_in_this_one(
    envoy_edge: Edge, replica: Replica, upgrade: str
) -> None:
    made = envoy_edge.make("■", replica)
    envoy_edge.wait_for(f"/{made.name}/")
    lines = (f"Upgrade: {upgrade}", "Connection: Upgrade")
    assert status_line(envoy_edge, made.name, *lines) == "HTTP/1.1 200 OK"


def numbered(name: str, lines: int, size: int = 1) -> tuple[str, ...]:
    return tuple(f"{name}-{number}: {'x' * size}" for number in range(lines))


def test_a_request_may_have_256_lines_and_96_kib(envoy_edge: Edge) -> None:
    with wide() as address:
        made = envoy_edge.make("■", address)
        envoy_edge.wait_for(f"/{made.name}/")
        assert status_line(envoy_edge, made.name, *numbered("a", 230)) == "HTTP/1.1 200 OK"
        assert "431" in status_line(envoy_edge, made.name, *numbered("a", 260))
        assert status_line(envoy_edge, made.name, *numbered("a", 90, 1000)) == "HTTP/1.1 200 OK"
        assert "431" in status_line(envoy_edge, made.name, *numbered("a", 100, 1000))


class Wide(StreamRequestHandler):
    """Takes a head of any size, and answers with as many lines as that says, of so many bytes each."""

    def handle(self) -> None:
        while (line := self.rfile.readline()) not in {b"", b"\r\n"}:
            said = {}
            while line not in {b"", b"\r\n"}:
                name, _, value = line.decode().strip().lower().partition(": ")
                said[name], line = value, self.rfile.readline()
            more = f"x-%d: {'x' * int(said.get('x-size', 0))}\r\n"
            lines = "".join(more % number for number in range(int(said.get("x-lines", 0))))
            self.wfile.write(f"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n{lines}\r\n".encode())


@contextmanager
def wide() -> Iterator[str]:
    """The address of such a replica."""
    with own_server(Wide) as server:
        yield server.address


@pytest.mark.parametrize(("lines", "size", "status"), [(240, 1, 200), (300, 1, 502), (90, 1000, 200), (110, 1000, 502)])
def test_an_answer_may_have_256_lines_and_96_kib(envoy_edge: Edge, lines: int, size: int, status: int) -> None:
    with wide() as address:
        made = envoy_edge.make("■", address)
        envoy_edge.wait_for(f"/{made.name}/")
        headers = {"x-lines": str(lines), "x-size": str(size)}
        assert plain_http.get(f"{envoy_edge.envoy.url}/{made.name}/", headers=headers, timeout=10).status_code == status


class Hasty(StreamRequestHandler):
    """Answers as the path says before it has read the body, reads that to its end, and closes."""

    def handle(self) -> None:
        status = self.rfile.readline().split()[1].rpartition(b"/")[2]
        while self.rfile.readline() not in {b"", b"\r\n"}:
            pass
        self.wfile.write(b"HTTP/1.1 %s Early\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % (status or b"200"))
        while self.rfile.read1(65_536):
            pass


@pytest.mark.parametrize("status", [401, 403, 413, 415, 417, 429])
@pytest.mark.parametrize("is_chunked", [False, True], ids=["length", "chunked"])
def test_an_answer_before_the_end_of_its_request_reaches_the_caller(
    envoy_edge: Edge, status: int, *, is_chunked: bool
) -> None:
    body = b"x" * 5_000_000
    with own_server(Hasty) as server:
        made = envoy_edge.make("■", server.address)
        envoy_edge.wait_for(f"/{made.name}/")
        content = (body[at : at + 50_000] for at in range(0, len(body), 50_000)) if is_chunked else body
        answer = plain_http.post(f"{envoy_edge.envoy.url}/{made.name}/{status}", content=content)
        assert answer.status_code == status


def test_a_replica_that_closes_connections_without_an_answer_gets_no_more_requests(envoy_edge: Edge) -> None:
    with replicas("good", "worse", "other") as all_three:
        made = envoy_edge.make("■■■", *all_three)
        envoy_edge.wait_for(f"/{made.name}/")
        all_three[1].hangs_up = True
        url = f"{envoy_edge.envoy.url}/{made.name}/"
        with plain_http.Client(timeout=10) as client:
            statuses: list[int] = []

            def is_answered() -> bool:
                statuses.append(client.post(url, content=b"x").status_code)
                return statuses[-1] == 200

            eventually(lambda: all(is_answered() for _ in range(50)), what="50 answers in a row")
            assert sum(status != 200 for status in statuses) < 15


def test_a_replica_that_answers_500_is_not_taken_for_broken(envoy_edge: Edge) -> None:
    with replicas("good", "failing", "other") as all_three:
        made = envoy_edge.make("■■■", *all_three)
        envoy_edge.wait_for(f"/{made.name}/")
        all_three[1].status = 500
        url = f"{envoy_edge.envoy.url}/{made.name}/"
        with plain_http.Client(timeout=10) as client:
            statuses = [client.post(url, content=b"x").status_code for _ in range(120)]
        assert statuses[-60:].count(500) > 10, "what a request makes fail is the request's"


def test_nobody_waits_behind_another_while_a_replica_is_idle(envoy_edge: Edge) -> None:
    """Four requests come one after the other, and none is answered before the last one has come."""
    with replicas("a", "b", "c", "d") as all_four:
        made = envoy_edge.make("■■■■", *all_four)
        envoy_edge.wait_for(f"/{made.name}/")
        url = f"{envoy_edge.envoy.url}/{made.name}/"

        def under_way(number: int) -> bool:
            return sum(each.served.total() for each in all_four) == number

        for _ in range(8):
            for each in all_four:
                each.may_end.clear()
                each.served.clear()
            with ThreadPoolExecutor(4) as callers:
                answers = []
                for number in range(1, 5):
                    answers.append(callers.submit(plain_http.post, url, content=b"x", timeout=30))
                    eventually(partial(under_way, number), what=f"{number} requests are under way")
                shares = [each.served.total() for each in all_four]
                for each in all_four:
                    each.may_end.set()
                assert {answer.result().status_code for answer in answers} == {200}
            assert shares == [1, 1, 1, 1]
