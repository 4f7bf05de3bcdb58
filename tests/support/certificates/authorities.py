"""A certificate authority of the tests' own, which certifies what it is asked to; and callers who believe it alone."""

import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import httpx
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.support.proxies.web_replicas import Replica

_LIFE = timedelta(days=90)


@dataclass(frozen=True)
class Certified:
    """A certificate and its key, in PEM."""

    chain: str
    key: str

    @property
    def alone(self) -> "Certified":
        """Without its issuer's certificate."""
        end = "-----END CERTIFICATE-----\n"
        return Certified(self.chain.partition(end)[0] + end, self.key)

    def written(self, folder: Path, name: str = "web") -> tuple[Path, Path]:
        """Files of both."""
        chain, key = folder / f"{name}.pem", folder / f"{name}.key"
        chain.write_text(self.chain)
        key.write_text(self.key)
        return chain, key


@dataclass(frozen=True)
class Authority:
    """It certifies whatever it is asked to."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def make(cls) -> Self:
        key, name = ec.generate_private_key(ec.SECP256R1()), _named("authority of the tests")
        basic = x509.BasicConstraints(ca=True, path_length=None)
        usage = x509.KeyUsage(
            *(False,) * 5, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False
        )
        made = _builder(name, name, key, datetime.now(UTC), _LIFE)
        return cls(
            made.add_extension(basic, critical=True).add_extension(usage, critical=True).sign(key, SHA256()), key
        )

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def certify(
        self,
        *names: str,
        begins: datetime | None = None,
        life: timedelta = _LIFE,
        key: CertificateIssuerPrivateKeyTypes | None = None,
    ) -> Certified:
        """One for these names, good from a minute ago on."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        begins = begins or datetime.now(UTC) - timedelta(minutes=1)
        made = _builder(_named(names[0] if names else "nobody"), self.certificate.subject, key, begins, life)
        if names:
            alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
            made = made.add_extension(alternatives, critical=False)
        chain = made.sign(self.key, SHA256()).public_bytes(Encoding.PEM).decode() + self.pem
        form = PrivateFormat.PKCS8, NoEncryption()
        return Certified(chain, key.private_bytes(Encoding.PEM, *form).decode())

    def context(self, own: tuple[Path, Path] | None = None) -> ssl.SSLContext:
        """Of a caller who believes this authority alone; `own`: what it shows itself."""
        context = ssl.create_default_context(cadata=self.pem)
        if own is not None:
            context.load_cert_chain(*own)
        return context


def ask(
    url: str,
    context: ssl.SSLContext,
    at: int,
    method: str = "GET",
    host: str = "",
    *,
    http2: bool = False,
    **more: Any,
) -> httpx.Response:
    """Ask for a URL whose host is at this port of 127.0.0.1; `host`: another one than the handshake names.

    Raises httpx.ConnectError when the handshake fails, httpx.ReadError when the server refuses the caller after it.
    """
    parts = urlsplit(url)
    name = parts.hostname or ""
    with httpx.Client(verify=context, trust_env=False, timeout=300, http2=http2) as client:
        return client.request(
            method,
            f"{parts.scheme}://127.0.0.1:{at}{parts.path or '/'}",
            headers={"host": host or name},
            extensions={"sni_hostname": name},
            **more,
        )


def shown(at: int, name: str, context: ssl.SSLContext) -> str:
    """The certificate in PEM that is shown at this port to who asks for the name."""
    plain = socket.create_connection(("127.0.0.1", at), 20)
    with plain, context.wrap_socket(plain, server_hostname=name) as secure:
        return ssl.DER_cert_to_PEM_cert(secure.getpeercert(binary_form=True) or b"")


def _builder(
    subject: x509.Name, issuer: x509.Name, key: CertificateIssuerPrivateKeyTypes, begins: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + life)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def speaks_tls(replica: Replica, certified: Certified, folder: Path) -> set[str]:
    """Returns the names that it is asked for."""
    names: set[str] = set()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certified.written(folder, replica.name))

    def asked(_: ssl.SSLObject, name: str | None, __: ssl.SSLContext) -> None:
        names.add(name or "")

    context.sni_callback = asked
    listening = replica.server.socket
    replica.server.socket = context.wrap_socket(listening, server_side=True, do_handshake_on_connect=False)
    return names
