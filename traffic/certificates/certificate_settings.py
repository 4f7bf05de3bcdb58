"""Settings of certificates: the key that theirs are sealed with, and the authority that gives them."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from domain.installation.settings import Settings, absolute

LETS_ENCRYPT = "https://acme-v02.api.letsencrypt.org/directory"

CERTIFICATE_KEY: str | None = Field(
    None,
    min_length=32,
    validation_alias="ROLLWAY_CERTIFICATE_KEY",
    repr=False,
    description="a secret of at least 32 characters, such as 'openssl rand -hex 32' makes",
)


class CertificateSettings(Settings):
    """What workers are told of certificates."""

    key: str | None = CERTIFICATE_KEY
    """What the keys of certificates are sealed with in Postgres, the same everywhere; without it there are none."""
    directory: str = Field(
        LETS_ENCRYPT,
        pattern=r"^https://\S+$",
        validation_alias="ROLLWAY_ACME_DIRECTORY",
        description="the https:// address of a directory",
    )
    """The authority that gives certificates (RFC 8555); left out, Let's Encrypt, to whose terms `tls: auto` agrees."""
    email: str | None = Field(
        None, pattern=r"^\S+@\S+$", validation_alias="ROLLWAY_ACME_EMAIL", description="an address for mail"
    )
    """Whom the authority may write to about the certificates."""
    authorities: Annotated[Path, BeforeValidator(absolute)] | None = Field(
        None, validation_alias="ROLLWAY_ACME_CA", description="the absolute path of a file of certificates in PEM"
    )
    """By which authorities the directory itself may be certified; left out, by those that browsers believe."""
    challenge: Literal["http-01", "tls-alpn-01"] = Field(
        "http-01", validation_alias="ROLLWAY_ACME_CHALLENGE", description="http-01 or tls-alpn-01"
    )
    """The ACME challenge: HTTP-01 (port 80), or TLS-ALPN-01 if only port 443 is open."""
    dns_hook: Annotated[Path, BeforeValidator(absolute)] | None = Field(
        None, validation_alias="ROLLWAY_ACME_DNS_HOOK", description="the absolute path of a program"
    )
    """A program that sets and takes away a TXT record, run as PROGRAM set|unset NAME VALUE; needed for wildcards."""
