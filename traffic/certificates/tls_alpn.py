"""The certificate by which a host name is proven within a TLS handshake (RFC 8737)."""

import hashlib
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

_IDENTIFIER = x509.ObjectIdentifier("1.3.6.1.5.5.7.1.31")
_OCTETS_OF_A_HASH = b"\x04\x20"
"""DER of an octet string of 32 bytes, as it begins."""
_LIFE = timedelta(days=7)


def proof_of(host: str, key: str, authorization: str) -> str:
    """Make a certificate, in PEM, that proves the host name to who asks for `acme-tls/1`: it signs itself.

    `key`: its private key in PEM, P-256. `authorization`: the key authorization of the challenge (RFC 8555, 8.1).
    """
    private = load_pem_private_key(key.encode(), None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)  # noqa: S101  (narrows the type)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rollway")])
    digest = hashlib.sha256(authorization.encode()).digest()
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _LIFE)
        .not_valid_after(now + _LIFE)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.UnrecognizedExtension(_IDENTIFIER, _OCTETS_OF_A_HASH + digest), critical=True)
        .sign(private, SHA256())
    )
    return made.public_bytes(Encoding.PEM).decode()
