"""How replicas are spoken to, what of it is stored, and which heads of their answers proxies refuse."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from domain.traffic.tls import ReplicaTls, Upstream, UpstreamTls, known_upstream, replica_tls
from domain.traffic.wire import (
    MOST_HEADER_KIB,
    MOST_HEADER_LINES,
    Protocol,
    ReplicaWire,
    Wire,
    known_wire,
    refusal_of,
    replica_wire,
    stored_wire,
)

CA = "file:/etc/ssl/ca.pem"
TLS, NAMED = UpstreamTls(), UpstreamTls(CA, "inside")


@pytest.mark.parametrize(
    ("wire", "words", "begins", "stored"),
    [
        (Wire(), "HTTP/1.1 in clear text", "", {"protocol": "http1"}),
        (Wire(Protocol.HTTP2), "HTTP/2 in clear text", "http2", {"protocol": "http2"}),
        (Wire(upstream_tls=TLS), "HTTP/1.1 by TLS", "tls-", {"protocol": "http1", "upstream_tls": {}}),
        (
            Wire(Protocol.HTTP2, NAMED),
            f"HTTP/2 by TLS (ca {CA}, server_name inside)",
            "http2-tls-",
            {"protocol": "http2", "upstream_tls": {"ca": CA, "server_name": "inside"}},
        ),
        (
            Wire(upstream_tls=UpstreamTls(None, "inside")),
            "HTTP/1.1 by TLS (server_name inside)",
            "tls-",
            {"protocol": "http1", "upstream_tls": {"server_name": "inside"}},
        ),
    ],
)
def test_a_wire_in_words_and_as_it_is_stored(wire: Wire, words: str, begins: str, stored: dict[str, Any]) -> None:
    assert str(wire) == words
    assert stored_wire(wire) == stored
    assert known_wire({**stored, "of_a_newer_release": 1}) == wire
    assert wire.name.startswith(begins)
    assert len(wire.name) == len(begins) + (8 if wire.upstream_tls else 0)
    assert wire.ca == (CA if wire.upstream_tls is NAMED else None)


def test_each_way_of_speaking_has_a_name_of_its_own_which_stays() -> None:
    """Proxies know clusters by it, from one release to the next."""
    assert Wire(upstream_tls=TLS).name == "tls-44136fa3"
    assert len({Wire(upstream_tls=its).name for its in (TLS, NAMED, UpstreamTls(CA), UpstreamTls(None, "inside"))}) == 4


@pytest.mark.parametrize(
    ("settings", "text", "spoken"),
    [
        (None, None, None),
        (None, "PEM", None),
        (TLS, None, ReplicaTls("web", None)),  # those that systems believe
        (NAMED, "PEM", ReplicaTls("inside", "PEM")),
        (NAMED, None, ReplicaTls("inside", "")),  # not known yet
        (UpstreamTls(CA), "PEM", ReplicaTls("web", "PEM")),
    ],
)
def test_replicas_are_expected_to_be_called_as_their_deployment_unless_it_says_otherwise(
    settings: UpstreamTls | None, text: str | None, spoken: ReplicaTls | None
) -> None:
    assert replica_tls("web", settings, text) == spoken
    assert replica_wire("web", Wire(Protocol.HTTP2, settings), text) == ReplicaWire(Protocol.HTTP2, spoken)


@pytest.mark.parametrize(
    ("written", "settings"), [(True, TLS), (False, None), (None, None), ({"ca": CA, "server_name": "inside"}, NAMED)]
)
def test_tls_to_replicas_is_written_as_yes_as_no_or_in_full(written: Any, settings: UpstreamTls | None) -> None:
    assert TypeAdapter(Upstream).validate_python(written) == settings


def test_what_a_newer_release_stored_of_tls_to_replicas_is_left_out() -> None:
    assert known_upstream(None) is None
    assert known_upstream({"ca": CA, "server_name": "inside", "alpn": "h3"}) == NAMED
    assert known_upstream({}) == TLS


def head(*lines: str, status: str = "200 OK", end: str = "\r\n") -> bytes:
    return end.join((f"HTTP/1.1 {status}", *lines)).encode("latin-1")


@pytest.mark.parametrize(
    "taken",
    [
        head(),
        head("Content-Length: 7", "X-A: b"),
        head("content-length:7 ", "x-a: \tb"),
        head("Transfer-Encoding: chunked"),
        head("transfer-encoding: CHUNKED"),
        head("X-A: one", "  two", "\tthree"),  # a line that goes on
        head("X-A: b", end="\n"),
        head("X-A:"),
        head("X-A: tab\tand umlaut \xe4"),
        head("Content-Length: 0", status="204 No Content"),
        head("Transfer-Encoding: chunked", status="2040 x"),
        head(*(f"X-{number}: 1" for number in range(MOST_HEADER_LINES))),
    ],
)
def test_a_sound_head_is_taken(taken: bytes) -> None:
    assert refusal_of(taken) == ""


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (head(*(f"X-{number}: 1" for number in range(257))), "it has 257 header lines, and 256 may be"),
        (head("X-A: " + "a" * 110 * 1024), "its header lines are 110 KiB, and 96 may be"),
        (head("X A: 1"), "'X A: 1' is no header line"),
        (head("X-A"), "'X-A' is no header line"),
        (head(": 1"), "': 1' is no header line"),
        (head("?" * 50), f"'{'?' * 40}' is no header line"),
        (head("X-\xe4: 1"), "'X-\xe4: 1' is no header line"),
        (head("X-A: a\x00b"), "the value of X-A has a control character"),
        (head("X-A: a\x7f"), "the value of X-A has a control character"),
        (head("Content-Length: 7", "content-length: 7"), "it has two Content-Length"),
        (head(*["Content-Length: 7"] * 3), "it has two Content-Length"),
        (head("Content-Length: 7, 7"), "its Content-Length is '7, 7', and may only be digits"),
        (head("Content-Length:"), "its Content-Length is '', and may only be digits"),
        (head("Content-Length: 7", "Transfer-Encoding: chunked"), "it has both Content-Length and Transfer-Encoding"),
        (head(*["Transfer-Encoding: chunked"] * 2), "it has two Transfer-Encoding"),
        (head("Content-Length: 7", *["Transfer-Encoding: a"] * 2), "it has both Content-Length and Transfer-Encoding"),
        (head("Transfer-Encoding: gzip"), "its Transfer-Encoding is 'gzip', and may only be chunked"),
        (
            head("Transfer-Encoding: chunked", status="204 No Content"),
            "it is 204, which has no body, and has Transfer-Encoding",
        ),
        (head("Transfer-Encoding: chunked", status="204"), "it is 204, which has no body, and has Transfer-Encoding"),
    ],
)
def test_a_head_that_envoy_refuses_is_named_with_its_fault(refused: bytes, why: str) -> None:
    assert refusal_of(refused) == why


def test_a_head_may_be_as_large_as_proxies_take() -> None:
    assert (MOST_HEADER_LINES, MOST_HEADER_KIB) == (256, 96)
    rest = MOST_HEADER_KIB * 1024 - len(head("X-A: "))
    assert refusal_of(head("X-A: " + "a" * rest)) == ""
    assert refusal_of(head("X-A: " + "a" * (rest + 1))) == "its header lines are 96 KiB, and 96 may be"
