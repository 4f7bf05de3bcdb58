"""Probes of replicas that speak HTTP/2: real gRPC servers with gRPC's own health service, and answers of every kind."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from h2.config import H2Configuration
from h2.connection import H2Connection
from hypothesis import given
from hypothesis import strategies as st

from domain.revisions.health_check import HealthCheck
from runtime.probing.http1 import ProbeAnswer
from runtime.probing.http2 import GrpcQuestion, Http2Question
from tests.support.proxies.http2_replica import http2_replica
from tests.support.workers.probed import OK, answer, says

CHECK = "gRPC health check"
NO_HTTP2 = "the connection broke, or the answer is not HTTP/2"
NO_HEALTH = f"{CHECK}: the answer is none of grpc.health.v1.Health"
GRPC = HealthCheck(protocol="grpc")
SERVING = b"\x00\x00\x00\x00\x02\x08\x01"


@contextmanager
def grpc_server(*handlers: grpc.GenericRpcHandler, health_of: dict[str, int] | None = None) -> Iterator[str]:
    """Its address. `health_of`: what gRPC's own health service says, by the name of the service."""
    with ThreadPoolExecutor(4) as threads:
        server = grpc.server(threads)
        if health_of is not None:
            servicer = health.HealthServicer()
            for name, status in health_of.items():
                servicer.set(name, status)
            health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
        server.add_generic_rpc_handlers(handlers)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(0).wait()


def checked_by(check: Any) -> grpc.GenericRpcHandler:
    """A health service of this function, whose messages are bytes."""
    methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {"Check": grpc.unary_unary_rpc_method_handler(check)}
    return grpc.method_handlers_generic_handler("grpc.health.v1.Health", methods)


@pytest.mark.parametrize(
    ("service", "seen"),
    [
        (None, ProbeAnswer(ok=True, detail=f"{CHECK} answered SERVING")),
        ("shop.Cart", ProbeAnswer(ok=False, detail=f"{CHECK} of shop.Cart answered NOT_SERVING")),
        ("shop.New", ProbeAnswer(ok=False, detail=f"{CHECK} of shop.New answered UNKNOWN")),
        (
            "n" * 127,
            ProbeAnswer(
                ok=False,
                detail=f"{CHECK} of {'n' * 127} answered NOT_FOUND: the replica's health service does not know it",
            ),
        ),
    ],
)
def test_what_the_health_service_of_a_grpc_server_says_is_what_counts(service: str | None, seen: ProbeAnswer) -> None:
    response = health_pb2.HealthCheckResponse
    statuses = {"": response.SERVING, "shop.Cart": response.NOT_SERVING, "shop.New": response.UNKNOWN}
    with grpc_server(health_of=statuses) as address:
        assert answer(address, protocol="grpc", service=service) == seen


def test_a_grpc_server_without_a_health_service_is_told_so() -> None:
    with grpc_server() as address:
        seen = f"{CHECK} answered UNIMPLEMENTED: the replica has no grpc.health.v1.Health"
        assert answer(address, protocol="grpc") == ProbeAnswer(ok=False, detail=seen)


def test_any_other_status_is_told_with_its_reason_as_it_can_be_stored() -> None:
    def check(_: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(grpc.StatusCode.PERMISSION_DENIED, "who are\0you? " + "long" * 100)

    with grpc_server(checked_by(check)) as address:
        seen = answer(address, protocol="grpc")
    assert not seen.ok
    assert seen.detail.startswith(f"{CHECK} answered PERMISSION_DENIED: who are\ufffdyou? longlong")
    assert len(seen.detail) < 260


def test_a_health_service_that_hangs_has_its_time_and_no_more() -> None:
    over = Event()
    with grpc_server(checked_by(lambda *_: over.wait(30) and b"")) as address:
        seen = ProbeAnswer(ok=False, detail=f"{CHECK}: no answer within 0.2 s", is_late=True)
        assert answer(address, protocol="grpc", timeout_seconds=0.2) == seen
        over.set()


def test_a_path_is_asked_for_in_http2() -> None:
    with http2_replica() as address:
        assert answer(address, protocol="http2") == ProbeAnswer(ok=True, detail="GET /health answered 200")
        broken = answer(address, protocol="http2", path="/broken")
        assert broken == ProbeAnswer(ok=False, detail="GET /broken answered 503")


def test_who_speaks_the_other_http_is_told_so() -> None:
    with grpc_server() as address:
        told = answer(address).detail
    assert told == "GET /health: the replica speaks HTTP/2 alone: set health_check.protocol to http2 or grpc"
    with says(OK) as address:
        assert answer(address, protocol="http2").detail == "GET /health: the replica speaks no HTTP/2"


@pytest.mark.parametrize("reply", [b"", b"SSH-2.0-OpenSSH_9.6\r\n", bytes(100)])
def test_what_is_not_http2_is_a_failure(reply: bytes) -> None:
    with says(reply) as address:
        assert answer(address, protocol="grpc") == ProbeAnswer(ok=False, detail=f"{CHECK}: {NO_HTTP2}")


def said(
    *headers: tuple[str, str], body: bytes = b"", trailers: tuple[tuple[str, str], ...] = (), asked: HealthCheck = GRPC
) -> bytes:
    """What a server sends that answers with these headers, this body and these trailers."""
    server = H2Connection(H2Configuration(client_side=False, validate_outbound_headers=False))
    server.initiate_connection()
    question = Http2Question("a:1", asked) if asked.protocol == "http2" else GrpcQuestion("a:1", asked)
    server.receive_data(question.to_send())
    server.send_headers(1, headers, end_stream=not body and not trailers)
    for first in range(0, len(body), 16_000):
        server.send_data(1, body[first : first + 16_000], end_stream=not trailers and first + 16_000 >= len(body))
    if trailers:
        server.send_headers(1, trailers, end_stream=True)
    return server.data_to_send()


FINE = ((":status", "200"), ("content-type", "application/grpc"))
ENDED = (("grpc-status", "0"),)


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        (said(*FINE, body=SERVING, trailers=ENDED), f"{CHECK} answered SERVING"),
        (said(*FINE, body=SERVING), NO_HEALTH),
        (said(*FINE, trailers=ENDED), NO_HEALTH),
        (said(*FINE, body=b"\x01" + SERVING[1:], trailers=ENDED), NO_HEALTH),
        (said(*FINE, body=SERVING[:-1] + b"\x09", trailers=ENDED), NO_HEALTH),
        (said(*FINE, body=bytes(5_000), trailers=ENDED), NO_HEALTH),
        (
            said(*FINE, ("grpc-status", "14"), ("grpc-message", "%F0%9F")),
            f"{CHECK} answered UNAVAILABLE: \ufffd",
        ),
        (said(*FINE, ("grpc-status", "16")), f"{CHECK} answered UNAUTHENTICATED"),
        (said(*FINE, ("grpc-status", "99")), NO_HEALTH),
        (said((":status", "404"), ("content-type", "text/html"), body=b"<html>"), NO_HEALTH),
        (said((":status", "two")), NO_HEALTH),
    ],
)
def test_only_a_whole_answer_that_says_so_is_serving(sent: bytes, seen: str) -> None:
    question = GrpcQuestion("a:1", GRPC)
    question.to_send()
    assert question.hear(sent) == ProbeAnswer(ok=seen.endswith(" SERVING"), detail=seen)


def test_an_answer_may_come_byte_by_byte() -> None:
    question = GrpcQuestion("a:1", GRPC)
    sent = said(*FINE, body=SERVING, trailers=ENDED)
    heard = [question.hear(sent[number : number + 1]) for number in range(len(sent))]
    assert [bool(found) for found in heard] == [False] * (len(sent) - 1) + [True]


@given(st.data())
def test_whatever_is_answered_it_raises_nothing(data: st.DataObject) -> None:
    checks = [GRPC, HealthCheck(protocol="http2")]
    check = data.draw(st.sampled_from(checks))
    good = bytearray(said(*FINE, body=SERVING, trailers=ENDED, asked=check))
    for place in data.draw(st.lists(st.integers(0, len(good) - 1), max_size=4)):
        good[place] = data.draw(st.integers(0, 255))
    question: Any = GrpcQuestion("a:1", check) if check is GRPC else Http2Question("a:1", check)
    question.to_send()
    heard = question.hear(bytes(good) + data.draw(st.binary(max_size=50)))
    assert heard is None or isinstance(heard, ProbeAnswer)
