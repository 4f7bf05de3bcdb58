"""Requests that warm a replica up, sent to real servers: in HTTP/1.1 and HTTP/2, in clear text and by TLS."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from domain.replicas.warm_up import WarmUpAnswer
from domain.revisions.warm_start_spec import MOST_BODY_BYTES, WarmUpRequest
from domain.traffic.tls import ReplicaTls
from domain.traffic.wire import Protocol, ReplicaWire
from runtime.probing.warm_up_requests import warm_up_answer
from tests.support.certificates.authorities import Authority
from tests.support.proxies.http2_replica import http2_replica
from tests.support.workers.probed import OK, says, secured

HTTP1, HTTP2 = ReplicaWire(), ReplicaWire(Protocol.HTTP2)


def asked(address: str, wire: ReplicaWire = HTTP1, **request: object) -> WarmUpAnswer:
    made = WarmUpRequest.model_validate({"path": "/", **request})
    return asyncio.run(asyncio.wait_for(warm_up_answer(address, "shop.example.com", made, wire), 20))


@contextmanager
def noting(reply: Callable[[socket.socket], None]) -> Iterator[tuple[str, list[bytes]]]:
    """A server for one request, and what it was sent."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                heard.append(connection.recv(65536))
                reply(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}", heard
        thread.join(10)


def test_the_replica_sees_what_the_revision_says_and_that_it_is_a_warm_up() -> None:
    with noting(lambda connection: connection.sendall(OK)) as (address, heard):
        headers = {"Authorization": "Bearer t", "User-Agent": "me"}
        answer = asked(address, method="POST", path="/v1?a=b", body='{"é": 1}', headers=headers)
    assert (answer.status, answer.line) == (200, "")
    head, _, body = heard[0].partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    assert first == "POST /v1?a=b HTTP/1.1"
    assert body.decode() == '{"é": 1}'
    assert sorted(line.lower() for line in lines) == [
        "accept: */*",
        "authorization: bearer t",
        "connection: close",
        "content-length: 9",
        "content-type: application/json",
        "host: shop.example.com",
        "user-agent: me",
        "x-rollway-warm-up: yes",
    ]


def test_an_answer_has_ended_when_all_of_it_is_there() -> None:
    may_end = threading.Event()

    def slowly(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nda")
        threading.Timer(0.3, may_end.set).start()
        may_end.wait()
        connection.sendall(b"ta")

    with noting(slowly) as (address, _):
        answer = asked(address)
    assert (answer.status, answer.line) == (200, "data")
    assert answer.seconds >= 0.3


@pytest.mark.parametrize(
    ("reply", "status", "line"),
    [
        (b"HTTP/1.1 503 No\r\ncontent-length: 24\r\n\r\n\n  loading the model \nxyz", 503, "loading the model"),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", 200, "until the end"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200, "abc"),
        (b"HTTP/1.1 204 No\r\n\r\n", 204, ""),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc", None, "the connection broke, or the answer is not HTTP"),
        (b"SSH-2.0-OpenSSH\r\n", None, "the connection broke, or the answer is not HTTP"),
        (b"", None, "the connection broke, or the answer is not HTTP"),
    ],
)
def test_what_is_answered(reply: bytes, status: int | None, line: str) -> None:
    with says(reply) as address:
        answer = asked(address)
    assert (answer.status, answer.line) == (status, line)


def test_a_head_has_no_body() -> None:
    with says(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n") as address:
        assert asked(address, method="HEAD").status == 200


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    answer = asked(address)
    assert (answer.status, answer.line) == (None, f"{address} refused the connection")


def test_a_replica_that_speaks_http2_alone_is_spoken_to_as_callers_are() -> None:
    with http2_replica() as address:
        answer = asked(address, HTTP2, method="POST", body="x" * MOST_BODY_BYTES)
        assert (answer.status, answer.line[:13]) == (200, '{"revision": ')
        assert asked(address, HTTP2, path="/broken").status == 503
        assert asked(address).status is None
    with says(OK) as address:
        assert asked(address, HTTP2).status is None


def test_by_tls_the_replica_is_believed_as_its_callers_believe_it(tmp_path: Path) -> None:
    authority = Authority.make()
    with secured(authority.certify("web").written(tmp_path)) as address:
        assert asked(address, ReplicaWire(tls=ReplicaTls("web", authority.pem))).status == 200
        refused = asked(address, ReplicaWire(tls=ReplicaTls("other", authority.pem)))
        assert refused.status is None
        assert "is not believed for other" in refused.line
