"""A certificate authority that speaks ACME (RFC 8555): an account, an order, a challenge, and the certificate.

Each step can be continued by another worker: an order is known by its address, and its key by the order's row.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import josepy.errors
import requests
from acme import challenges, client, crypto_util, errors, messages
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from josepy.jwa import ES256
from josepy.jwk import JWKEC

from domain.text.errors import RollwayError
from domain.traffic.tls import TLS_ALPN
from domain.traffic.tls_material import ANY_HOST

_MOST_SAID = 300


class AuthorityError(RollwayError):
    """The authority gave no certificate; the message says why."""


class AuthorityAwayError(RollwayError):
    """The authority cannot be reached, or is in trouble itself; what was ordered may still come."""


class UnknownOrderError(RollwayError):
    """The authority does not know the order, or has given it up."""


class UnknownAccountError(RollwayError):
    """The authority does not know the account."""


@contextmanager
def told_apart() -> Iterator[None]:
    """Translate an error of the library into one for the caller: away, unknown, or refused."""
    try:
        yield
    except messages.Error as error:
        raise _refusal(error) from error
    except errors.ClientError as error:
        if "404" in str(error):
            raise UnknownOrderError("the authority does not know the order any more") from error
        raise _unreadable(error) from error
    except errors.IssuanceError as error:
        raise _refusal(error.error) from error
    except OSError as error:  # the library lets those of its own requests through, and of the file of authorities
        raise AuthorityAwayError(f"the authority {_unreached(error)}") from error
    except (errors.Error, josepy.errors.Error, ValueError) as error:
        raise _unreadable(error) from error


def _refusal(error: messages.Error) -> RollwayError:
    detail = str(error.detail or error.code)[:_MOST_SAID]
    match error.code:
        case "accountDoesNotExist":
            return UnknownAccountError("the authority does not know the account any more")
        case "serverInternal" | "badNonce":
            return AuthorityAwayError(f"the authority is in trouble: {detail}")
        case "rateLimited":
            return AuthorityError(f"the authority was asked too often: {detail}")
    return AuthorityError(f"the authority refused: {detail}")


def _unreached(error: OSError) -> str:
    if not isinstance(error, requests.RequestException):
        return f"cannot be asked: {str(error)[:_MOST_SAID]}"
    at = urlsplit(str(error.request.url)).netloc if error.request is not None else "its address"
    match error:
        case requests.exceptions.SSLError():
            return (
                f"at {at} shows a certificate that nobody here believes; ROLLWAY_ACME_CA says who else may be believed"
            )
        case requests.Timeout():
            return f"at {at} does not answer in time"
        case requests.ConnectionError() if "NameResolutionError" in str(error):
            return f"cannot be reached: no name server knows {at}"
    return f"cannot be reached at {at}"


def _unreadable(error: Exception) -> AuthorityError:
    return AuthorityError(
        f"the authority answered what cannot be read: {type(error).__name__}: {str(error)[:_MOST_SAID]}"
    )


_IDENTIFIER = x509.ObjectIdentifier("1.3.6.1.5.5.7.1.31")
_OCTETS_OF_A_HASH = b"\x04\x20"
"""DER of an octet string of 32 bytes, as it begins."""
_LIFE = timedelta(days=7)


def proof_of(host: str, key: str, authorization: str) -> str:
    """Make a self-signed certificate, in PEM, that proves the host name in a handshake with `acme-tls/1`.

    `key`: its private key in PEM, P-256. `authorization`: the key authorization of the challenge (RFC 8555, 8.1).
    """
    private = load_pem_private_key(key.encode(), None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)  # noqa: S101  (narrows the type)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rollway")])
    digest = hashlib.sha256(authorization.encode()).digest()
    now = datetime.now(UTC)
    builder = (
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
    return builder.public_bytes(Encoding.PEM).decode()


_USER_AGENT = "rollway"
_SECONDS = 20
_FINALIZING = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class AcmeAccount:
    """An account at an authority: its private key in PEM, and its address there; empty while it has none."""

    key: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """An order for one host name. `key`: the certificate's private key in PEM."""

    url: str
    key: str


@dataclass(frozen=True, slots=True)
class WantedProof:
    """The proof that the authority wants, by its `kind`: where, and what.

    `http-01`: the answer at the path of the token; `tls-alpn-01`: the answer, a certificate of the order's own key, in
    a handshake; `dns-01`: the answer in a TXT record. `response`: what the authority is told when it is there.
    """

    kind: str
    token: str
    answer: str
    challenge: messages.ChallengeBody
    response: Any

    @property
    def is_open(self) -> bool:
        """Whether the authority waits for word that the answer is in place."""
        return bool(self.challenge.status == messages.STATUS_PENDING)


@dataclass
class Authority:
    """An authority, with an account there. `trusted`: a file of authorities that may certify its own server.

    `challenge`: how a host name is proven, but one below which all are meant, which only DNS proves.
    """

    directory: str
    account: AcmeAccount
    trusted: Path | None = None
    challenge: str = "http-01"

    def register(self, email: str | None) -> AcmeAccount:
        """Make the account, or find the one of this key; returns it with its address."""
        registration = messages.NewRegistration.from_data(email=email, terms_of_service_agreed=True)
        with told_apart():
            try:
                return replace(self.account, url=self._client.new_account(registration).uri)
            except errors.ConflictError as known:
                return replace(self.account, url=known.location)

    def order(self, host: str) -> Order:
        """Order a certificate with a key of its own."""
        key = new_key()
        with told_apart():
            return Order(self._client.new_order(crypto_util.make_csr(key.encode(), [host])).uri, key)

    def wanted_proof(self, order: Order, host: str) -> WantedProof | None:
        """The proof that the authority wants before it issues the certificate; None when it has seen it.

        Raises AuthorityError where it wants what nobody can show.
        """
        kind = "dns-01" if host.startswith(ANY_HOST) else self.challenge
        for authorization in self._order(order, host).authorizations:
            if authorization.body.status == messages.STATUS_VALID:
                continue
            _refuse_invalid(authorization)
            for each in authorization.body.challenges:
                if each.chall.to_json()["type"] == kind:
                    return self._proof(each, order, host)
            raise AuthorityError(f"the authority offers no {kind} for {host}")
        return None

    def answer(self, proof: WantedProof) -> None:
        """Tell the authority that the proof is in place."""
        with told_apart():
            self._client.answer_challenge(proof.challenge, proof.response)

    def issued(self, order: Order, host: str) -> str | None:
        """The certificate with its chain in PEM; None while the authority still checks.

        Raises AuthorityError with what it found when it gives none.
        """
        resource = self._order(order, host)
        for authorization in resource.authorizations:
            _refuse_invalid(authorization)
        if resource.body.status == messages.STATUS_PENDING:
            return None
        with told_apart():
            try:
                deadline = datetime.now() + _FINALIZING  # noqa: DTZ005 -- the library's own clock
                return str(self._client.finalize_order(resource, deadline).fullchain_pem)
            except errors.TimeoutError:
                return None

    def _order(self, order: Order, host: str) -> messages.OrderResource:
        with told_apart():
            body = messages.Order.from_json(self._fetch(order.url).json())
            asked_for = [(url, self._fetch(url).json()) for url in body.authorizations or ()]
            return messages.OrderResource(
                body=body,
                uri=order.url,
                csr_pem=crypto_util.make_csr(order.key.encode(), [host]),
                authorizations=[
                    messages.AuthorizationResource(body=messages.Authorization.from_json(authorization), uri=url)
                    for url, authorization in asked_for
                ],
            )

    def _fetch(self, url: str) -> requests.Response:
        """POST-as-GET (RFC 8555, 6.3)."""
        return self._client.net.post(url, None, new_nonce_url=self._client.directory["newNonce"])

    def _proof(self, challenge: messages.ChallengeBody, order: Order, host: str) -> WantedProof:
        fields = challenge.chall.to_json()
        if isinstance(challenge.chall, challenges.DNS01):
            return WantedProof(
                "dns-01", "", challenge.chall.validation(self._key), challenge, challenge.chall.response(self._key)
            )
        # the library has no tls-alpn-01; what is signed for it is that of http-01
        http01 = challenges.HTTP01.from_json({**fields, "type": "http-01"})
        response = http01.response(self._key)
        if fields["type"] == TLS_ALPN:
            proof = proof_of(host, order.key, http01.key_authorization(self._key))
            return WantedProof(TLS_ALPN, TLS_ALPN, proof, challenge, response)
        return WantedProof("http-01", http01.encode("token"), http01.validation(self._key), challenge, response)

    @cached_property
    def _key(self) -> JWKEC:
        return JWKEC(key=load_pem_private_key(self.account.key.encode(), None))

    @cached_property
    def _client(self) -> client.ClientV2:
        net = client.ClientNetwork(self._key, alg=ES256, user_agent=_USER_AGENT, timeout=_SECONDS)
        if self.trusted is not None:
            net.verify_ssl = str(self.trusted)  # type: ignore[assignment]  # a path, as requests takes one
        if self.account.url:
            net.account = messages.RegistrationResource(body=messages.Registration(), uri=self.account.url)
        with told_apart():
            return client.ClientV2(client.ClientV2.get_directory(self.directory, net), net)


def new_key() -> str:
    """A private key for a certificate or an account, P-256 in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _refuse_invalid(authorization: messages.AuthorizationResource) -> None:
    if authorization.body.status == messages.STATUS_INVALID:
        failed = [challenge.error for challenge in authorization.body.challenges if challenge.error is not None]
        why = failed[0].detail if failed else "it says no more"
        raise AuthorityError(f"the authority did not find what it asked for: {why}")
