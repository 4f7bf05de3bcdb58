"""Replicas that answer badly, each in its own way, and the advice that an examination ends with."""

import asyncio
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest

from domain.replicas.diagnosis import advice, summary_of
from domain.revisions.health_check import HealthCheck
from domain.traffic.tls import ReplicaTls
from runtime.probing.examine import examine
from runtime.process.process_runtime import ProcessRuntime
from runtime.process.process_table import listening_of
from tests.support.certificates.authorities import Authority
from tests.support.stack.waiting import eventually
from tests.support.workers.probed import OK, Replies, replying, says
from tests.support.workers.runtimes import python, request

HOST = "web.example.com"


def status(code: int, *headers: str, body: str = "") -> bytes:
    return "\r\n".join((f"HTTP/1.1 {code} So", *headers, f"Content-Length: {len(body)}", "", body)).encode()


def found(
    address: str,
    *,
    listening: tuple[str, ...] = (),
    is_container: bool = False,
    tls: ReplicaTls | None = None,
    **check: object,
) -> str:
    """The advice; empty where nothing is wrong."""
    known = HealthCheck.model_validate(check)
    examination = asyncio.run(examine(address, known, HOST, listening, is_container=is_container, tls=tls))
    assert summary_of(examination)
    return advice(examination) or ""


def slow(path: str, _: str) -> bytes:
    if path == "/health":
        threading.Event().wait(0.4)
    return OK


BROKEN: dict[str, tuple[Replies, dict[str, Any], str]] = {
    "is well": (lambda *_: OK, {}, ""),
    "has more header lines than proxies take": (
        lambda *_: status(200, *(f"X-{number}: 1" for number in range(300))),
        {},
        "proxies refuse its answer, so callers get 502: it has 301 header lines, and 256 may be",
    ),
    "has longer header lines than proxies take": (
        lambda *_: status(200, f"X-A: {'x' * 200_000}"),
        {},
        "its header lines are",
    ),
    "has header lines as long as proxies take": (lambda *_: status(200, f"X-A: {'x' * 90_000}"), {}, ""),
    "has two lengths": (lambda *_: status(200, "Content-Length: 7"), {}, "it has two Content-Length"),
    "answers 204 in chunks, after early hints": (
        lambda *_: (
            b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
            b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        ),
        {},
        "it is 204, which has no body, and has Transfer-Encoding",
    ),
    "refuses callers alone by a blank in a name": (
        lambda path, _: OK if path == "/health" else status(200, "X A: 1"),
        {},
        "'X A: 1' is no header line",
    ),
    "redirects to https": (
        lambda *_: status(301, f"Location: https://{HOST}/"),
        {},
        f"sends callers on to https://{HOST}/, though they may have come by https",
    ),
    "redirects callers alone": (
        lambda path, _: OK if path == "/health" else status(308, f"Location: https://{HOST}/"),
        {},
        "say in x-forwarded-proto how the caller came",
    ),
    "redirects elsewhere": (lambda *_: status(302, "Location: /login"), {}, ""),
    "refuses the name of a probe": (
        lambda _, named: OK if named == HOST else status(400),
        {},
        f", as which a probe asks: set health_check.host to {HOST}",
    ),
    "knows the name of its callers, and is asked by it": (
        lambda _, named: OK if named == HOST else status(400),
        {"host": HOST},
        "",
    ),
    "refuses the name that it is asked by": (
        lambda _, named: OK if named == HOST else status(421),
        {"host": "other.example.com"},
        f"answers {HOST} and not Host: other.example.com, as which a probe asks: set health_check.host to {HOST}",
    ),
    "has another path for the name that it is asked by": (
        lambda path, named: OK if (path, named) == ("/up", HOST) else status(404),
        {"host": HOST},
        "set health_check.path to /up",
    ),
    "refuses the name of callers": (
        lambda _, named: OK if named.startswith("127.") else status(421),
        {},
        f"a caller of {HOST} is answered 421",
    ),
    "has another path": (
        lambda path, _: OK if path == "/healthz" else status(404),
        {},
        "set health_check.path to /healthz",
    ),
    "has no path": (lambda *_: status(404), {"path": "/up"}, "does not know /up, nor /healthz or"),
    "takes longer than a probe waits": (slow, {"timeout_seconds": 0.1}, "set health_check.timeout_seconds to 1"),
    "wants a login": (lambda *_: status(401), {}, "/health asks for a login"),
    "fails": (lambda *_: status(500), {}, "'rollway logs' shows"),
    "promises more than it sends": (
        lambda *_: status(200, body="12345").replace(b": 5", b": 9"),
        {},
        "not as long as its Content-Length says",
    ),
    "sends more than it promises": (
        lambda *_: status(200, body="12345").replace(b": 5", b": 3"),
        {},
        "not as long as its Content-Length says",
    ),
    "speaks HTTP/2 alone": (
        lambda *_: b"\x00\x00\x00\x04\x00\x00\x00\x00\x00",
        {},
        "set health_check.protocol and traffic.protocol to http2",
    ),
    "speaks no HTTP/2": (lambda *_: OK, {"protocol": "http2"}, "leave health_check.protocol out"),
    "speaks no gRPC": (lambda *_: OK, {"protocol": "grpc"}, "leave health_check.protocol out"),
    "speaks another language": (lambda *_: b"SSH-2.0-OpenSSH_9.6\r\n", {}, "another program may listen there"),
    "hangs up": (lambda *_: b"", {}, "it breaks at the question"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_replica_that_answers_badly_gets_the_sentence_that_helps(broken: str) -> None:
    replies, check, words = BROKEN[broken]
    with replying(replies) as address:
        told = found(address, **check)
    assert words in told
    assert bool(words) == bool(told)
    assert bool(words) == bool(told)


def test_a_container_that_listens_at_its_own_loopback_is_told_so() -> None:
    with says(b"") as address:
        assert "let it listen at 0.0.0.0" in found(address, is_container=True)


def test_a_replica_that_speaks_tls_is_told_so(tmp_path: Path) -> None:
    authority, context = Authority.make(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.certify("inside").written(tmp_path))
    with replying(lambda *_: OK, context) as address:
        assert "say traffic.upstream_tls" in found(address)
        assert found(address, tls=ReplicaTls("inside", authority.pem), timeout_seconds=60) == ""
        for tls in (ReplicaTls("other", authority.pem), ReplicaTls("inside", Authority.make().pem)):
            examination = asyncio.run(examine(address, HealthCheck(), HOST, tls=tls))
            assert f"a certificate that is not believed for {tls.name}" in summary_of(examination)
            assert "let traffic.upstream_tls say who certifies it" in (advice(examination) or "")


def test_a_replica_that_speaks_no_tls_is_told_so() -> None:
    with replying(lambda *_: OK) as address:
        assert "leave that out where it speaks no TLS" in found(address, tls=ReplicaTls("inside", None))


@pytest.mark.parametrize("elsewhere", ["the port of another", "the loopback of another"])
def test_a_replica_that_listens_elsewhere_is_told_where(runtime: ProcessRuntime, elsewhere: str) -> None:
    where = "('127.0.0.1', 0)" if elsewhere == "the port of another" else "('127.0.0.2', int(os.environ['PORT']))"
    code = f"import os, socket, time\nserver = socket.create_server({where})\ntime.sleep(600)"
    replica = runtime.start(request(python(code)))
    assert replica.address
    (place,) = eventually(lambda: listening_of(replica.handle))
    told = found(replica.address, listening=(place,))
    assert told.startswith(f"it listens at {place}: let it listen at {replica.address}")
    assert "opened no port yet" in found(replica.address)
