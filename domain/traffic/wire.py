"""The wire of replicas: each revision has its own, so that both sides of a rollout are understood."""

import json
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
        """Where a worker finds the authorities that certify the replicas; None: no own ones do."""
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
