"""What is in a certificate, and whether proxies can show it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from domain.words.errors import RollwayError


class CertificateFaultError(RollwayError):
    """The certificate cannot be shown; the message says why, and what would be right."""


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """The host names that a certificate was made out to, and from when to when it is good."""

    names: tuple[str, ...]
    not_before: datetime
    not_after: datetime


def read_certificate(chain: str, key: str, now: datetime) -> CertificateFacts:
    """Read a chain of certificates in PEM, the one to show first, with its key. Raises CertificateFaultError."""
    first = _certificates(chain, "certificate")[0]
    try:
        private = load_pem_private_key(key.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise CertificateFaultError("the key is no private key in PEM without a password") from None
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    if private.public_key().public_bytes(*form) != first.public_key().public_bytes(*form):
        raise CertificateFaultError(
            "the key belongs to another certificate; the first one in the file must be the key's own"
        )
    facts = CertificateFacts(_names(first), first.not_valid_before_utc, first.not_valid_after_utc)
    if now >= facts.not_after:
        raise CertificateFaultError(f"it ended at {facts.not_after:%Y-%m-%d %H:%M} UTC; give one that is good")
    if now < facts.not_before:
        raise CertificateFaultError(f"it is good from {facts.not_before:%Y-%m-%d %H:%M} UTC on, and not yet")
    if not facts.names:
        raise CertificateFaultError("it names no host; it must have a subject alternative name for each")
    return facts


def check_authorities(text: str) -> None:
    """Raise CertificateFaultError unless the text is certificates in PEM, of authorities to be believed."""
    _certificates(text, "file of authorities")


def _certificates(text: str, what: str) -> Sequence[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        right = "it must begin with -----BEGIN CERTIFICATE-----"
        raise CertificateFaultError(f"the {what} is not in PEM: {right}") from None


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(dict.fromkeys(name.lower() for name in found.get_values_for_type(x509.DNSName)))
