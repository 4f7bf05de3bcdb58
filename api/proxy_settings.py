"""Settings of the server for proxies: where it listens, and how it knows proxies."""

from ipaddress import ip_address
from pathlib import Path

from pydantic import Field

from domain.text.errors import InvalidInputError
from traffic.edge_settings import CERTIFICATE_KEY, InFront
from traffic.routing_table import TlsDoor

API_PORT = 7070
DISCOVERY_PORT = 7073


class ApiSettings(InFront):
    """The trust in proxies: one of them can delay drains, or release them too early."""

    host: str = Field("127.0.0.1", validation_alias="ROLLWAY_API_HOST", description="an address of this machine")
    """The address to listen at."""
    port: int = Field(
        API_PORT, ge=1, le=65_535, validation_alias="ROLLWAY_API_PORT", description="a port from 1 to 65535"
    )
    """The port for Traefik, Prometheus and people."""
    discovery_port: int = Field(
        DISCOVERY_PORT, ge=1, le=65_535, validation_alias="ROLLWAY_DISCOVERY_PORT", description="a port from 1 to 65535"
    )
    """The port for Envoy, over gRPC."""
    discovery_socket: Path | None = Field(
        None, validation_alias="ROLLWAY_DISCOVERY_SOCKET", description="the path of a Unix socket"
    )
    """A Unix socket for Envoys of this machine instead: no other user of it gets in, or takes its place."""
    proxy_key: str | None = Field(
        None,
        min_length=32,
        validation_alias="ROLLWAY_PROXY_KEY",
        repr=False,
        description="a secret of at least 32 characters, such as 'openssl rand -hex 32' makes",
    )
    """The secret behind the tokens of proxies; without it any proxy is believed, and only this machine can connect."""

    certificate_key: str | None = CERTIFICATE_KEY
    """The key that seals the keys of certificates in Postgres, the same as for workers."""
    tls_port: int | None = Field(
        None, ge=1, le=65_535, validation_alias="ROLLWAY_TLS_PORT", description="a port from 1 to 65535"
    )
    """The port where every Envoy listens for HTTPS; left out: none, so that no certificate is shown."""
    tls_host: str = Field("0.0.0.0", validation_alias="ROLLWAY_TLS_HOST", description="an address of the proxies")  # noqa: S104 -- as a proxy at the edge listens
    """The address of the machine for that port."""
    tls_public_port: int | None = Field(
        None, ge=1, le=65_535, validation_alias="ROLLWAY_TLS_PUBLIC_PORT", description="a port from 1 to 65535"
    )
    """The port of HTTPS from outside, for redirects; left out, the same port."""

    @property
    def discovery(self) -> str:
        """The address for Envoy, as gRPC writes it."""
        if self.discovery_socket is not None:
            return f"unix:{self.discovery_socket}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.discovery_port}"

    @property
    def tls_door(self) -> TlsDoor | None:
        """The port where proxies listen for TLS."""
        if self.tls_port is None:
            return None
        in_front = InFront(trusted_hops=self.trusted_hops, proxy_protocol=self.proxy_protocol)
        return TlsDoor(self.tls_host, self.tls_port, self.tls_public_port or self.tls_port, in_front)

    def refuse_strangers(self) -> None:
        """Raises InvalidInputError when other machines could connect and there is no key to know proxies by."""
        if self.proxy_key is None and not _is_of_this_machine(self.host):
            raise InvalidInputError(
                f"ROLLWAY_PROXY_KEY is not set, and other machines reach {self.host}: set it to a secret of at least "
                "32 characters here and for 'rollway envoy-bootstrap', or ROLLWAY_API_HOST to 127.0.0.1",
                field="ROLLWAY_PROXY_KEY",
            )


def _is_of_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
