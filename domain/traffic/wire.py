"""The wire of replicas, each revision its own, so that both sides are understood; and the heads that proxies refuse."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any

from domain.traffic.tls import UPSTREAM_TLS, ReplicaTls, UpstreamTls, known_upstream, replica_tls


class Protocol(StrEnum):
    """The protocol of replicas, in clear text; with HTTP/2, from the first byte on."""

    HTTP1 = "http1"
    HTTP2 = "http2"


_PROTOCOLS = {protocol.value: protocol for protocol in Protocol}


def known_protocol(word: str) -> Protocol:
    """The protocol of that name; one that only a newer release knows is taken for HTTP/1."""
    return _PROTOCOLS.get(word, Protocol.HTTP1)


@dataclass(frozen=True, slots=True)
class Wire:
    """The protocol of a revision's replicas. `upstream_tls`: None: in clear text."""

    protocol: Protocol = Protocol.HTTP1
    upstream_tls: UpstreamTls | None = None

    def __str__(self) -> str:
        protocol = "HTTP/2" if self.protocol is Protocol.HTTP2 else "HTTP/1.1"
        if self.upstream_tls is None:
            return f"{protocol} in clear text"
        extras = {"ca": self.ca, "server_name": self.upstream_tls.server_name}
        details = ", ".join(f"{name} {value}" for name, value in extras.items() if value)
        return f"{protocol} by TLS{f' ({details})' if details else ''}"

    @property
    def ca(self) -> str | None:
        """The place of the authorities that certify the replicas; None: those of the system do."""
        return self.upstream_tls.ca if self.upstream_tls else None

    @property
    def name(self) -> str:
        """A short name, such as http2-tls-5f1c2a09; empty for HTTP/1.1 in clear text."""
        words = [self.protocol.value] if self.protocol is not Protocol.HTTP1 else []
        if self.upstream_tls is not None:
            words.append(f"tls-{sha256(json.dumps(_stored_tls(self.upstream_tls)).encode()).hexdigest()[:8]}")
        return "-".join(words)


@dataclass(frozen=True, slots=True)
class ReplicaWire:
    """A wire, with the certificates to trust."""

    protocol: Protocol = Protocol.HTTP1
    tls: ReplicaTls | None = None


def stored_wire(wire: Wire) -> dict[str, Any]:
    tls = {} if wire.upstream_tls is None else {"upstream_tls": _stored_tls(wire.upstream_tls)}
    return {"protocol": wire.protocol.value, **tls}


def known_wire(raw: Mapping[str, Any]) -> Wire:
    return Wire(known_protocol(raw["protocol"]), known_upstream(raw.get("upstream_tls")))


def replica_wire(deployment: str, wire: Wire, ca: str | None) -> ReplicaWire:
    """The wire of a deployment's replicas; `ca`: its text, None until it is read."""
    return ReplicaWire(wire.protocol, replica_tls(deployment, wire.upstream_tls, ca))


def _stored_tls(settings: UpstreamTls) -> dict[str, Any]:
    raw: dict[str, Any] = UPSTREAM_TLS.dump_python(settings, mode="json", exclude_defaults=True)
    return raw


MOST_HEADER_LINES = 256
MOST_HEADER_KIB = 96
"""The largest head that a request and an answer may have."""

_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LINE_END, _FOLDED = re.compile(rb"\r?\n"), re.compile(rb"\r?\n(?=[ \t])")
_NO_CONTENT = b"204"


def refusal_of(head: bytes) -> str:
    """What makes Envoy refuse an answer in HTTP/1.1, as a clause about it; empty where it takes it.

    `head`: the bytes up to its empty line. Heads of 1xx before it are left out.
    """
    first, *lines = _LINE_END.split(_FOLDED.sub(b"", head))
    if len(lines) > MOST_HEADER_LINES:
        return f"it has {len(lines)} header lines, and {MOST_HEADER_LINES} may be"
    if len(head) > MOST_HEADER_KIB * 1024:
        return f"its header lines are {len(head) // 1024} KiB, and {MOST_HEADER_KIB} may be"
    headers: list[tuple[bytes, bytes]] = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not (colon and _NAME.fullmatch(name)):
            return f"{line[:40].decode('latin-1')!r} is no header line"
        if _CONTROL.search(value):
            return f"the value of {name.decode()} has a control character"
        headers.append((name, value.strip(b" \t")))
    return _framing(first, headers)


def _framing(first: bytes, headers: list[tuple[bytes, bytes]]) -> str:
    lengths = [value for name, value in headers if name.lower() == b"content-length"]
    codings = [value for name, value in headers if name.lower() == b"transfer-encoding"]
    match lengths, codings:
        case [[_, _, *_], _]:
            return "it has two Content-Length"
        case [[length], _] if not length.isdigit():
            return f"its Content-Length is {length.decode('latin-1')!r}, and may only be digits"
        case [[_], [_, *_]]:
            return "it has both Content-Length and Transfer-Encoding"
        case [_, [_, _, *_]]:
            return "it has two Transfer-Encoding"
        case [_, [coding]] if coding.lower() != b"chunked":
            return f"its Transfer-Encoding is {coding.decode('latin-1')!r}, and may only be chunked"
        case [_, [_]] if first.split(b" ")[1:2] == [_NO_CONTENT]:
            return "it is 204, which has no body, and has Transfer-Encoding"
    return ""
