"""Settings at the edge: a balancer in front of the proxies, the key that seals certificates' keys, their authority."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from domain.installation.settings import Settings, absolute

MOST_HOPS = 16


class InFront(Settings):
    """The settings of a balancer in front of the proxies."""

    trusted_hops: int = Field(
        0, ge=0, le=MOST_HOPS, validation_alias="ROLLWAY_TRUSTED_HOPS", description=f"a number from 0 to {MOST_HOPS}"
    )
    """The number of proxies in front of Envoy whose x-forwarded-for and x-forwarded-proto are believed."""
    proxy_protocol: bool = Field(default=False, validation_alias="ROLLWAY_PROXY_PROTOCOL", description="on or off")
    """Whether each connection to Envoy begins with the PROXY protocol; one without it is closed then."""


NOTHING_IN_FRONT = InFront()


LETS_ENCRYPT = "https://acme-v02.api.letsencrypt.org/directory"

CERTIFICATE_KEY: str | None = Field(
    None,
    min_length=32,
    validation_alias="ROLLWAY_CERTIFICATE_KEY",
    repr=False,
    description="a secret of at least 32 characters, such as 'openssl rand -hex 32' makes",
)


class CertificateSettings(Settings):
    """The workers' settings of certificates."""

    key: str | None = CERTIFICATE_KEY
    """The key that seals the keys of certificates in Postgres, the same everywhere; without it there are none."""
    directory: str = Field(
        LETS_ENCRYPT,
        pattern=r"^https://\S+$",
        validation_alias="ROLLWAY_ACME_DIRECTORY",
        description="the https:// address of a directory",
    )
    """The authority that issues certificates (RFC 8555); left out, Let's Encrypt, to whose terms `tls: auto` agrees."""
    email: str | None = Field(
        None, pattern=r"^\S+@\S+$", validation_alias="ROLLWAY_ACME_EMAIL", description="an address for mail"
    )
    """The address for mail from the authority about the certificates."""
    authorities: Annotated[Path, BeforeValidator(absolute)] | None = Field(
        None, validation_alias="ROLLWAY_ACME_CA", description="the absolute path of a file of certificates in PEM"
    )
    """A CA bundle that verifies the ACME directory; left out, the one that browsers trust."""
    challenge: Literal["http-01", "tls-alpn-01"] = Field(
        "http-01", validation_alias="ROLLWAY_ACME_CHALLENGE", description="http-01 or tls-alpn-01"
    )
    """The ACME challenge: HTTP-01 (port 80), or TLS-ALPN-01 if only port 443 is open."""
    dns_hook: Annotated[Path, BeforeValidator(absolute)] | None = Field(
        None, validation_alias="ROLLWAY_ACME_DNS_HOOK", description="the absolute path of a program"
    )
    """A program that sets and removes a TXT record, run as PROGRAM set|unset NAME VALUE; needed for wildcards."""
