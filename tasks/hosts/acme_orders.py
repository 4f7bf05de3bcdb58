"""Certificates are read, ordered and renewed by one of the workers, from a thread of its own.

account ─► order ─► challenge ─► every live proxy answers it ─► the authority looks ─► certificate
noted      noted    noted                                                              noted
"""

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING

import structlog
from sqlalchemy import Engine

from db.certificates import (
    NewCertificate,
    TakenCertificate,
    account_at,
    forget_account,
    hold,
    leave,
    note_account,
    note_certificate,
    note_challenge,
    note_fault,
    note_order,
    note_same,
    proxies_of_challenge,
    take_due,
)
from db.connection.transactions import in_transaction
from domain.revisions.secret_refs import SecretReference
from domain.text.errors import RollwayError
from domain.traffic.tls import CertificateKind, asked_again_after, renewed_at, tried_again_after
from domain.traffic.tls_material import ANY_HOST, why_unfit
from runtime.host_secrets import HostSecrets, SecretFaultError
from tasks.hosts.background import keep_looking
from traffic.edge_settings import CertificateSettings

if TYPE_CHECKING:
    from traffic.certificates.acme import Authority, Order, WantedProof
    from traffic.certificates.x509 import KeySeal


LEASE = timedelta(minutes=2)
"""The lease of an order. It is longer than the slowest authority needs between two renewals of it."""
_ASKED_AGAIN = 1.0
_PROXIES_SECONDS = 20.0
_LOOKED_SECONDS = 60.0
_HOOK_SECONDS = 120
_AT_ONCE, _SOON = timedelta(seconds=1), timedelta(seconds=10)


@dataclass(frozen=True)
class Ordering:
    """Orders certificates of the authority that the settings name."""

    engine: Engine
    settings: CertificateSettings
    note_fault: Callable[..., None]
    until: threading.Event

    @cached_property
    def seal(self) -> "KeySeal":
        """What keys are sealed with. Raises RollwayError where there is no key for that."""
        from traffic.certificates.x509 import KeySeal  # noqa: PLC0415 -- cryptography, which few workers need

        if self.settings.key is None:
            raise RollwayError(
                "ROLLWAY_CERTIFICATE_KEY is not set for the workers, so no certificate's key can be kept"
            )
        return KeySeal(self.settings.key)

    def go_on(self, certificate: TakenCertificate) -> None:
        """Go on with the order of a certificate, or order it; note it, or why there is none."""
        from traffic.certificates import acme as at  # noqa: PLC0415 -- the library, which few workers need

        fault: Callable[..., None] = partial(self.note_fault, certificate)
        try:
            self._go_on(certificate)
        except at.UnknownAccountError as error:
            in_transaction(self.engine, partial(forget_account, directory=self.settings.directory))
            fault(error.message, _AT_ONCE)
        except at.UnknownOrderError as error:
            fault(error.message, _AT_ONCE)
        except at.AuthorityAwayError as error:
            fault(error.message, asked_again_after(certificate.failures + 1), keeps_order=True)
        except _NotYetError as error:
            fault(error.message, _SOON, keeps_order=True)
        except RollwayError as error:
            fault(error.message, tried_again_after(certificate.failures + 1))

    def _go_on(self, certificate: TakenCertificate) -> None:
        if certificate.name.startswith(ANY_HOST) and self.settings.dns_hook is None:
            raise RollwayError(f"{certificate.name} is proven by DNS: set ROLLWAY_ACME_DNS_HOOK for the workers")
        authority = self._authority()
        order = self._order(authority, certificate)
        proof = authority.wanted_proof(order, certificate.name)
        if proof is None:
            return self._finish(authority, order, certificate)
        with self._showing(proof, certificate):
            if proof.is_open:
                authority.answer(proof)
            return self._finish(authority, order, certificate)

    def _authority(self) -> "Authority":
        from traffic.certificates.acme import AcmeAccount, Authority, new_key  # noqa: PLC0415 -- as above

        directory, trusted = self.settings.directory, self.settings.authorities
        row = in_transaction(self.engine, partial(account_at, directory=directory))
        if row is None:
            authority = Authority(directory, AcmeAccount(new_key()), trusted).register(self.settings.email)
            note = partial(
                note_account, directory=directory, sealed_key=self.seal.seal(authority.key), url=authority.url
            )
            row = in_transaction(self.engine, note)
        account = AcmeAccount(self.seal.unseal(row[0]), row[1])
        return Authority(directory, account, trusted, self.settings.challenge)

    def _order(self, authority: "Authority", certificate: TakenCertificate) -> "Order":
        from traffic.certificates.acme import Order  # noqa: PLC0415 -- as above

        if certificate.order_url is not None and certificate.order_key is not None:
            return Order(certificate.order_url, self.seal.unseal(certificate.order_key))
        order = authority.order(certificate.name)
        note = partial(note_order, certificate=certificate, url=order.url, order_key=self.seal.seal(order.key))
        in_transaction(self.engine, note)
        return order

    @contextmanager
    def _showing(self, proof: "WantedProof", certificate: TakenCertificate) -> Iterator[None]:
        """Have the answer seen: by every live proxy, or in DNS."""
        if proof.kind == "dns-01":
            self._run_hook("set", certificate, proof)
            try:
                yield
            finally:
                with suppress(RollwayError):
                    self._run_hook("unset", certificate, proof)
            return
        in_transaction(
            self.engine, partial(note_challenge, certificate=certificate, token=proof.token, answer=proof.answer)
        )
        self._wait_for_proxies(certificate)
        yield

    def _wait_for_proxies(self, certificate: TakenCertificate) -> None:
        """Raises _NotYetError when one of them does not answer, as the authority might ask that one."""
        ends_at = time.monotonic() + _PROXIES_SECONDS
        while True:
            live, behind = in_transaction(self.engine, partial(proxies_of_challenge, certificate=certificate))
            if live and not behind:
                return
            if time.monotonic() > ends_at or self.until.is_set():
                why = f"{behind} of {live} proxies do not" if live else "there is no live proxy to"
                raise _NotYetError(f"the authority is not asked yet: {why} answer its challenge")
            self.until.wait(_ASKED_AGAIN / 4)

    def _run_hook(self, verb: str, certificate: TakenCertificate, proof: "WantedProof") -> None:
        name = f"_acme-challenge.{certificate.name.removeprefix(ANY_HOST)}"
        command = [str(self.settings.dns_hook), verb, name, proof.answer]
        in_transaction(
            self.engine, partial(hold, certificate=certificate, lease=timedelta(seconds=_HOOK_SECONDS) + LEASE)
        )
        try:
            subprocess.run(command, check=True, timeout=_HOOK_SECONDS, capture_output=True)  # noqa: S603 -- the host's owner has named it
        except (OSError, subprocess.SubprocessError) as error:
            raise RollwayError(f"ROLLWAY_ACME_DNS_HOOK did not {verb} {name}: {error}") from None

    def _finish(self, authority: "Authority", order: "Order", certificate: TakenCertificate) -> None:
        """Wait until the authority has looked, and note what it gives. Raises _NotYetError, and what it refuses."""
        ends_at = time.monotonic() + _LOOKED_SECONDS
        while (chain := authority.issued(order, certificate.name)) is None:
            if time.monotonic() > ends_at or self.until.is_set():
                raise _NotYetError("the authority still looks")
            in_transaction(self.engine, partial(hold, certificate=certificate, lease=LEASE))
            self.until.wait(_ASKED_AGAIN)
        from traffic.certificates.x509 import read_certificate  # noqa: PLC0415 -- as above

        facts = read_certificate(chain, order.key, datetime.now(UTC))
        key = self.seal.seal(order.key)
        new = NewCertificate(chain, key, facts.names, facts.not_before, facts.not_after, facts.doubt)
        due_at = renewed_at(facts.not_before, facts.not_after)
        in_transaction(self.engine, partial(note_certificate, certificate=certificate, new=new, due_at=due_at))


class _NotYetError(RollwayError):
    """The order continues later; nothing was refused."""


_LOOK_SECONDS = 5.0
_AGAIN = timedelta(seconds=30)
"""What a file holds is read again so often."""
_log = structlog.get_logger(__name__)


class UnreadCertificateError(RollwayError):
    """No certificate could be read here; another host may have it."""


class UnfitCertificateError(RollwayError):
    """The certificate does not take the place of the one that is shown; the message says why."""


@dataclass(frozen=True)
class CertificateWork:
    """The work of one worker on certificates, until it ends."""

    engine: Engine
    secrets: HostSecrets
    settings: CertificateSettings
    until: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        """Treat each certificate whose turn it is. Raises what Postgres raises."""
        while not self.until.is_set():
            certificate = in_transaction(self.engine, partial(take_due, lease=LEASE))
            if certificate is None:
                return
            self._treat(certificate)

    def _treat(self, certificate: TakenCertificate) -> None:
        try:
            match certificate.kind:
                case CertificateKind.ACME:
                    self._ordering.go_on(certificate)
                case CertificateKind.GIVEN:
                    self._read_given(certificate)
                case CertificateKind.CALLERS:
                    self._read_authorities(certificate, certificate.settings.callers_ca)
                case CertificateKind.REPLICAS:
                    self._read_authorities(certificate, certificate.name)
        except UnreadCertificateError as error:
            if certificate.is_read:  # a host that has it has just read it: that this one lacks it is no fault
                in_transaction(self.engine, partial(leave, certificate=certificate, pause=_SOON))
            else:
                self.note_fault(certificate, error.message, _SOON)
        except RollwayError as error:
            self.note_fault(certificate, error.message, _AGAIN)

    def note_fault(
        self, certificate: TakenCertificate, fault: str, pause: timedelta, *, keeps_order: bool = False
    ) -> None:
        """Note why there is none, and say so once."""
        if fault != certificate.fault:
            _log.warning("no certificate", deployment=certificate.deployment, name=certificate.name, why=fault)
        note = partial(note_fault, certificate=certificate, fault=fault, pause=pause, keeps_order=keeps_order)
        in_transaction(self.engine, note)

    def _read_given(self, certificate: TakenCertificate) -> None:
        from traffic.certificates.x509 import read_certificate  # noqa: PLC0415 -- cryptography, which few workers need

        chain, key = (
            self._resolve(certificate, certificate.settings.certificate),
            self._resolve(certificate, certificate.settings.key),
        )
        now, host = datetime.now(UTC), self.secrets.host
        facts = read_certificate(chain, key, now)
        is_older = certificate.not_before is not None and facts.not_before < certificate.not_before
        if certificate.is_read and certificate.read_by != host and is_older:
            raise UnreadCertificateError(f"host {certificate.read_by} has a newer one")
        is_good = certificate.not_after is not None and now < certificate.not_after
        if why := why_unfit(facts.names, certificate.names if is_good else (), certificate.hosts):
            raise UnfitCertificateError(why)
        if facts.doubt is not None and is_good and certificate.doubt is None and chain != certificate.chain:
            raise UnfitCertificateError(facts.doubt)
        sealed_key = self._ordering.seal.seal(key)
        new = NewCertificate(
            chain, sealed_key, facts.names, facts.not_before, facts.not_after, facts.doubt, read_by=host
        )
        self._write(certificate, new)

    def _read_authorities(self, certificate: TakenCertificate, reference: str | None) -> None:
        from traffic.certificates.x509 import check_authorities  # noqa: PLC0415 -- cryptography, which few workers need

        text = self._resolve(certificate, reference)
        check_authorities(text)
        self._write(certificate, NewCertificate(text, None, (), None, None, read_by=self.secrets.host))

    def _resolve(self, certificate: TakenCertificate, reference: str | None) -> str:
        try:
            return self.secrets.value_of(SecretReference(secret=reference or ""), certificate.deployment)
        except SecretFaultError as error:
            raise UnreadCertificateError(f"host {self.secrets.host} cannot read {reference}: {error}") from None

    def _write(self, certificate: TakenCertificate, new: NewCertificate) -> None:
        due_at = datetime.now(UTC) + _AGAIN
        if new.chain == certificate.chain:
            in_transaction(
                self.engine, partial(note_same, certificate=certificate, read_by=self.secrets.host, due_at=due_at)
            )
        else:
            in_transaction(self.engine, partial(note_certificate, certificate=certificate, new=new, due_at=due_at))

    @cached_property
    def _ordering(self) -> Ordering:
        return Ordering(self.engine, self.settings, self.note_fault, self.until)


def keep_certificates(
    engine: Engine, secrets: HostSecrets, settings: CertificateSettings, until: threading.Event
) -> threading.Thread:
    """Look every five seconds, from a thread of its own: an authority may take its time."""
    work = CertificateWork(engine, secrets, settings, until)
    return keep_looking(
        work.look, _LOOK_SECONDS, until, name="certificates", trouble="certificates not looked at", host=secrets.host
    )
