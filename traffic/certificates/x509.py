"""The contents of a certificate, whether proxies can show it, and how its key is sealed."""

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import pairwise

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from domain.text.errors import RollwayError

_SHORTEST_RSA = 2048
_CURVES = ("secp256r1", "secp384r1", "secp521r1")
"""Envoy refuses a certificate whose key has another curve, or is a shorter one of RSA."""


class CertificateFaultError(RollwayError):
    """The certificate cannot be shown; the message says why, and what would be right."""


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """The host names of a certificate, and the time for which it is valid.

    `doubt`: why some callers will not believe it; None: nothing in its file says so.
    """

    names: tuple[str, ...]
    not_before: datetime
    not_after: datetime
    doubt: str | None = None


def read_certificate(chain: str, key: str, now: datetime) -> CertificateFacts:
    """Read a chain of certificates in PEM, the one to show first, with its key. Raises CertificateFaultError."""
    certificates = _certificates(chain, "certificate")
    first = certificates[0]
    try:
        private = load_pem_private_key(key.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise CertificateFaultError("the key is no private key in PEM without a password") from None
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    if private.public_key().public_bytes(*form) != first.public_key().public_bytes(*form):
        raise CertificateFaultError(
            "the key belongs to another certificate; the first one in the file must be the key's own"
        )
    if why := _why_not_shown(first):
        raise CertificateFaultError(why)
    begins, ends = first.not_valid_before_utc, first.not_valid_after_utc
    facts = CertificateFacts(_names(first), begins, ends, _doubt(certificates))
    if now >= facts.not_after:
        raise CertificateFaultError(f"it ended at {facts.not_after:%Y-%m-%d %H:%M} UTC; give one that is good")
    if now < facts.not_before:
        raise CertificateFaultError(f"it is good from {facts.not_before:%Y-%m-%d %H:%M} UTC on, and not yet")
    if not facts.names:
        raise CertificateFaultError("it names no host; it must have a subject alternative name for each")
    return facts


def _why_not_shown(certificate: x509.Certificate) -> str | None:
    match certificate.public_key():
        case rsa.RSAPublicKey() as key if key.key_size < _SHORTEST_RSA:
            return (
                f"its key is RSA of {key.key_size:,} bits, and proxies show none below {_SHORTEST_RSA:,}; make it again"
            )
        case ec.EllipticCurvePublicKey() as key if key.curve.name not in _CURVES:
            return f"its key is of the curve {key.curve.name}, and proxies show {', '.join(_CURVES)}; make it again"
        case rsa.RSAPublicKey() | ec.EllipticCurvePublicKey() | ed25519.Ed25519PublicKey():
            return None
    return "its key is of a kind that proxies do not show; make it again, as RSA or with an elliptic curve"


def _doubt(certificates: Sequence[x509.Certificate]) -> str | None:
    """The fault of the order: each issuer must follow; the last may leave out a well-known root."""
    for issued, other in pairwise(certificates):
        if issued.issuer != other.subject:
            return f"behind {_called(issued.subject)} must come its issuer, {_called(issued.issuer)}, in the file"
    first = certificates[0]
    if len(certificates) == 1 and first.issuer != first.subject:
        return f"its issuer, {_called(first.issuer)}, is not in the file, so who does not know that one refuses it"
    return None


def _called(name: x509.Name) -> str:
    return name.rfc4514_string()


def check_authorities(text: str) -> None:
    """Raise CertificateFaultError unless the text is PEM certificates of authorities to trust."""
    _certificates(text, "file of authorities")


def _certificates(text: str, what: str) -> Sequence[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        right = "it must begin with -----BEGIN CERTIFICATE-----"
        raise CertificateFaultError(f"the {what} is not in PEM: {right}") from None


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(dict.fromkeys(name.lower() for name in names.get_values_for_type(x509.DNSName)))


class SealError(RollwayError):
    """The text was sealed with another key."""


@dataclass(frozen=True)
class KeySeal:
    """Seals and opens with the key of the installation (ROLLWAY_CERTIFICATE_KEY): AES-128-CBC with HMAC, by Fernet.

    `purpose`: what is sealed with the key, so that nothing else opens it.
    """

    key: str = field(repr=False)
    purpose: str = "rollway certificates"

    def seal(self, text: str) -> str:
        return self._fernet.encrypt(text.encode()).decode()

    def unseal(self, text: str) -> str:
        """The text that was sealed. Raises SealError when it was sealed with another key, or is damaged."""
        try:
            return self._fernet.decrypt(text.encode()).decode()
        except InvalidToken:
            raise SealError(
                "it was sealed with another ROLLWAY_CERTIFICATE_KEY, which must be the same for the workers and the "
                "servers for proxies"
            ) from None

    @cached_property
    def _fernet(self) -> Fernet:
        key = HKDF(SHA256(), 32, salt=None, info=self.purpose.encode()).derive(self.key.encode())
        return Fernet(urlsafe_b64encode(key))
