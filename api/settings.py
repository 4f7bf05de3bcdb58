"""Settings of the server for proxies: where it listens, and how it knows them."""

from ipaddress import ip_address

from pydantic import Field

from domain.installation.settings import Settings
from domain.words.errors import InvalidInputError

API_PORT = 7070
DISCOVERY_PORT = 7073


class ApiSettings(Settings):
    """The proxies that are believed: one of them can delay drains, or release them too early."""

    host: str = Field("127.0.0.1", validation_alias="ROLLWAY_API_HOST", description="an address of this machine")
    """Where it listens."""
    port: int = Field(
        API_PORT, ge=1, le=65_535, validation_alias="ROLLWAY_API_PORT", description="a port from 1 to 65535"
    )
    """Where it listens for Traefik, Prometheus and people."""
    discovery_port: int = Field(
        DISCOVERY_PORT, ge=1, le=65_535, validation_alias="ROLLWAY_DISCOVERY_PORT", description="a port from 1 to 65535"
    )
    """Where it listens for Envoy, over gRPC."""
    proxy_key: str | None = Field(
        None,
        min_length=32,
        validation_alias="ROLLWAY_PROXY_KEY",
        repr=False,
        description="a secret of at least 32 characters, such as 'openssl rand -hex 32' makes",
    )
    """What the tokens of proxies are made from; without it any proxy is believed, and only this machine can ask."""

    def refuse_strangers(self) -> None:
        """Raises InvalidInputError when other machines could reach it and there is no key to know proxies by."""
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
