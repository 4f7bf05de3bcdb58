"""Settings of `traffic.tls`: the certificate of a deployment, and the rules of its renewal."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, model_validator
from pydantic.dataclasses import dataclass

from domain.revisions.secret_refs import Reference
from domain.text.numbers import doubling_pause
from domain.traffic.tls_material import ANY_HOST

AUTO = "auto"
TLS_ALPN = "tls-alpn-01"
"""The challenge that is met within a handshake, by a certificate (RFC 8737)."""
_TWO_YEARS = 63_072_000


class CertificateKind(StrEnum):
    """The ways in which a certificate comes: as a file or a secret, from an authority, or to check others' own."""

    GIVEN = "given"
    ACME = "acme"
    CALLERS = "callers"
    REPLICAS = "replicas"


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class TlsSettings:
    """The certificate that callers see, and other settings of HTTPS.

    Without a certificate an authority gives one for each host name (`tls: auto`).
    """

    certificate: Reference | None = None
    """The place of the certificate with its chain in PEM on a worker's host, such as `file:/etc/ssl/web.pem`."""
    key: Reference | None = None
    """The place of the certificate's private key in PEM."""
    redirect: bool = True
    """Whether plain HTTP is redirected to HTTPS."""
    hsts_seconds: int | None = Field(default=None, ge=0, le=_TWO_YEARS)
    """The time for which browsers must use HTTPS alone (HSTS); left out: the header is not sent."""
    http3: bool = False
    """Whether callers may use HTTP/3 too, by UDP at the same port; a header announces it to browsers."""
    callers_ca: Reference | None = None
    """The place of the authorities, in PEM, that certify callers; left out: callers need no certificate."""

    @model_validator(mode="after")
    def _has_both(self) -> Self:
        if (self.certificate is None) != (self.key is None):
            missing_part = "certificate" if self.certificate is None else "key"
            raise ValueError(
                f"{missing_part}: a certificate and its key go together; leave out both for one by an authority"
            )
        if self.http3 and self.callers_ca is not None:
            raise ValueError("http3: proxies ask callers for no certificate there; leave it out, or callers_ca")
        return self

    @property
    def is_auto(self) -> bool:
        """Whether an authority gives the certificates."""
        return self.certificate is None


def _from_word(value: Any) -> Any:  # noqa: ANN401  (whatever a file contains)
    if value == AUTO:
        return {}
    if isinstance(value, str):
        right = "{certificate: 'file:/etc/ssl/web.pem', key: 'file:/etc/ssl/web.key'}"
        raise ValueError(f"must be auto, or a certificate with its key, such as {right}")  # noqa: TRY004 -- Pydantic's
    return value


Tls = Annotated[TlsSettings, BeforeValidator(_from_word)]
TLS_SETTINGS = TypeAdapter(TlsSettings)


def stored_tls(settings: TlsSettings) -> dict[str, Any]:
    raw: dict[str, Any] = TLS_SETTINGS.dump_python(settings, mode="json", exclude_defaults=True)
    return raw


def known_tls(raw: Mapping[str, Any] | None) -> TlsSettings | None:
    """The stored settings; further fields of a newer release are left out."""
    names = {field.name for field in fields(TlsSettings)}
    return None if raw is None else TlsSettings(**{name: raw[name] for name in names & raw.keys()})


def why_no_certificate(host: str) -> str | None:
    """Why no authority gives a certificate for a host name; None if one may."""
    if "." not in host.removeprefix(ANY_HOST) or host.endswith(".localhost"):
        return f"{host} is no name that an authority gives a certificate for; name hosts such as web.example.com"
    return None


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class UpstreamTls:
    """TLS to replicas: the certificates that proxies and probes accept. `true`: the defaults."""

    ca: Reference | None = None
    """The place of the authorities, in PEM, that certify replicas; left out: the authorities of the system."""
    server_name: str | None = Field(default=None, max_length=253, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    """The name in the request that the certificates must have; left out: the deployment's name."""


@dataclass(frozen=True, slots=True)
class ReplicaTls:
    """TLS as it is spoken to replicas. `ca`: in PEM; None: those that systems believe; empty: not known yet."""

    name: str
    ca: str | None


def _from_yes(value: Any) -> Any:  # noqa: ANN401  (whatever a file contains)
    match value:
        case True:
            return {}
        case False:
            return None
    return value


Upstream = Annotated[UpstreamTls | None, BeforeValidator(_from_yes)]
UPSTREAM_TLS = TypeAdapter(UpstreamTls)


def known_upstream(raw: Mapping[str, Any] | None) -> UpstreamTls | None:
    """The settings as they were stored."""
    return None if raw is None else UpstreamTls(raw.get("ca"), raw.get("server_name"))


def replica_tls(deployment: str, settings: UpstreamTls | None, ca: str | None) -> ReplicaTls | None:
    """TLS to the replicas of a deployment; `ca`: its text, None until it is read."""
    if settings is None:
        return None
    return ReplicaTls(settings.server_name or deployment, None if settings.ca is None else ca or "")


def wanted_certificates(
    settings: TlsSettings | None, hosts: tuple[str, ...], upstream: UpstreamTls | None = None
) -> frozenset[tuple[CertificateKind, str]]:
    """The certificates that such a deployment needs: by an authority one for each host name.

    The authorities of replicas are named by where they are: both sides of a rollout may have their own.
    """
    certificates = {(CertificateKind.REPLICAS, upstream.ca)} if upstream is not None and upstream.ca else set()
    if settings is not None:
        certificates |= {(CertificateKind.CALLERS, "")} if settings.callers_ca else set()
        certificates |= (
            {(CertificateKind.ACME, host) for host in hosts} if settings.is_auto else {(CertificateKind.GIVEN, "")}
        )
    return frozenset(certificates)


def renewed_at(not_before: datetime, not_after: datetime) -> datetime:
    """The time when a certificate is renewed: at two thirds of its life.

    ├──────────────── 90 days ────────────────┤
    ├─────────── 60 ───────────┼─ 30 for tries ┤
    """
    return not_before + (not_after - not_before) * 2 / 3


def tried_again_after(failures: int) -> timedelta:
    """The pause after this number of failures in a row: 2 minutes, doubling, to 12 hours.

    Let's Encrypt takes five failures for a name in an hour, and these are five in 62 minutes.
    """
    return doubling_pause(failures, first=120, longest=43_200)


def asked_again_after(failures: int) -> timedelta:
    """The pause before an unreachable authority is asked again: 10 seconds, doubling, to 10 minutes."""
    return doubling_pause(failures, first=10, longest=600)
