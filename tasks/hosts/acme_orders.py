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
from traffic.certificates.certificate_settings import CertificateSettings

if TYPE_CHECKING:
    from traffic.certificates.acme import Authority, Order, WantedProof
    from traffic.certificates.sealing import KeySeal


LEASE = timedelta(minutes=2)
"""Longer than an authority takes that is slow at every question between two of these."""
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
        from traffic.certificates.sealing import KeySeal  # noqa: PLC0415 -- cryptography, which few workers need

        if self.settings.key is None:
            raise RollwayError(
                "ROLLWAY_CERTIFICATE_KEY is not set for the workers, so no certificate's key can be kept"
            )
        return KeySeal(self.settings.key)

    def go_on(self, taken: TakenCertificate) -> None:
        """Go on with the order of a certificate, or order it; note it, or why there is none."""
        from traffic.certificates import acme as at  # noqa: PLC0415 -- the library, which few workers need

        fault: Callable[..., None] = partial(self.note_fault, taken)
        try:
            self._go_on(taken)
        except at.UnknownAccountError as error:
            in_transaction(self.engine, partial(forget_account, directory=self.settings.directory))
            fault(error.message, _AT_ONCE)
        except at.UnknownOrderError as error:
            fault(error.message, _AT_ONCE)
        except at.AuthorityAwayError as error:
            fault(error.message, asked_again_after(taken.failures + 1), keeps_order=True)
        except _NotYetError as error:
            fault(error.message, _SOON, keeps_order=True)
        except RollwayError as error:
            fault(error.message, tried_again_after(taken.failures + 1))

    def _go_on(self, taken: TakenCertificate) -> None:
        if taken.name.startswith(ANY_HOST) and self.settings.dns_hook is None:
            raise RollwayError(f"{taken.name} is proven by DNS: set ROLLWAY_ACME_DNS_HOOK for the workers")
        authority = self._authority()
        order = self._order(authority, taken)
        asked = authority.asked(order, taken.name)
        if asked is None:
            return self._finish(authority, order, taken)
        with self._shown(asked, taken):
            if asked.is_open:
                authority.answer(asked)
            return self._finish(authority, order, taken)

    def _authority(self) -> "Authority":
        from traffic.certificates.acme import AcmeAccount, Authority, new_key  # noqa: PLC0415 -- as above

        directory, trusted = self.settings.directory, self.settings.authorities
        known = in_transaction(self.engine, partial(account_at, directory=directory))
        if known is None:
            made = Authority(directory, AcmeAccount(new_key()), trusted).register(self.settings.email)
            note = partial(note_account, directory=directory, sealed_key=self.seal.closed(made.key), url=made.url)
            known = in_transaction(self.engine, note)
        account = AcmeAccount(self.seal.opened(known[0]), known[1])
        return Authority(directory, account, trusted, self.settings.challenge)

    def _order(self, authority: "Authority", taken: TakenCertificate) -> "Order":
        from traffic.certificates.acme import Order  # noqa: PLC0415 -- as above

        if taken.order_url is not None and taken.order_key is not None:
            return Order(taken.order_url, self.seal.opened(taken.order_key))
        order = authority.order(taken.name)
        note = partial(note_order, taken=taken, url=order.url, order_key=self.seal.closed(order.key))
        in_transaction(self.engine, note)
        return order

    @contextmanager
    def _shown(self, asked: "WantedProof", taken: TakenCertificate) -> Iterator[None]:
        """Have the answer seen: by every live proxy, or in DNS."""
        if asked.kind == "dns-01":
            self._run_hook("set", taken, asked)
            try:
                yield
            finally:
                with suppress(RollwayError):
                    self._run_hook("unset", taken, asked)
            return
        in_transaction(self.engine, partial(note_challenge, taken=taken, token=asked.token, answer=asked.answer))
        self._wait_for_proxies(taken)
        yield

    def _wait_for_proxies(self, taken: TakenCertificate) -> None:
        """Raises _NotYetError when one of them does not answer, as the authority might ask that one."""
        ends_at = time.monotonic() + _PROXIES_SECONDS
        while True:
            live, behind = in_transaction(self.engine, partial(proxies_of_challenge, taken=taken))
            if live and not behind:
                return
            if time.monotonic() > ends_at or self.until.is_set():
                why = f"{behind} of {live} proxies do not" if live else "there is no live proxy to"
                raise _NotYetError(f"the authority is not asked yet: {why} answer its challenge")
            self.until.wait(_ASKED_AGAIN / 4)

    def _run_hook(self, verb: str, taken: TakenCertificate, asked: "WantedProof") -> None:
        name = f"_acme-challenge.{taken.name.removeprefix(ANY_HOST)}"
        command = [str(self.settings.dns_hook), verb, name, asked.answer]
        in_transaction(self.engine, partial(hold, taken=taken, lease=timedelta(seconds=_HOOK_SECONDS) + LEASE))
        try:
            subprocess.run(command, check=True, timeout=_HOOK_SECONDS, capture_output=True)  # noqa: S603 -- the host's owner has named it
        except (OSError, subprocess.SubprocessError) as error:
            raise RollwayError(f"ROLLWAY_ACME_DNS_HOOK did not {verb} {name}: {error}") from None

    def _finish(self, authority: "Authority", order: "Order", taken: TakenCertificate) -> None:
        """Wait until the authority has looked, and note what it gives. Raises _NotYetError, and what it refuses."""
        ends_at = time.monotonic() + _LOOKED_SECONDS
        while (chain := authority.given(order, taken.name)) is None:
            if time.monotonic() > ends_at or self.until.is_set():
                raise _NotYetError("the authority still looks")
            in_transaction(self.engine, partial(hold, taken=taken, lease=LEASE))
            self.until.wait(_ASKED_AGAIN)
        from traffic.certificates.x509 import read_certificate  # noqa: PLC0415 -- as above

        facts = read_certificate(chain, order.key, datetime.now(UTC))
        sealed = self.seal.closed(order.key)
        new = NewCertificate(chain, sealed, facts.names, facts.not_before, facts.not_after, facts.doubt)
        due_at = renewed_at(facts.not_before, facts.not_after)
        in_transaction(self.engine, partial(note_certificate, taken=taken, new=new, due_at=due_at))


class _NotYetError(RollwayError):
    """The order goes on later; nothing was refused."""


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
            taken = in_transaction(self.engine, partial(take_due, lease=LEASE))
            if taken is None:
                return
            self._treat(taken)

    def _treat(self, taken: TakenCertificate) -> None:
        try:
            match taken.kind:
                case CertificateKind.ACME:
                    self._ordering.go_on(taken)
                case CertificateKind.GIVEN:
                    self._read_given(taken)
                case CertificateKind.CALLERS:
                    self._read_authorities(taken, taken.settings.callers_ca)
                case CertificateKind.REPLICAS:
                    self._read_authorities(taken, taken.name)
        except UnreadCertificateError as error:
            if taken.is_read:  # a host that has it has just read it: that this one lacks it is no fault
                in_transaction(self.engine, partial(leave, taken=taken, pause=_SOON))
            else:
                self.note_fault(taken, error.message, _SOON)
        except RollwayError as error:
            self.note_fault(taken, error.message, _AGAIN)

    def note_fault(self, taken: TakenCertificate, fault: str, pause: timedelta, *, keeps_order: bool = False) -> None:
        """Note why there is none, and say so once."""
        if fault != taken.fault:
            _log.warning("no certificate", deployment=taken.deployment, name=taken.name, why=fault)
        note = partial(note_fault, taken=taken, fault=fault, pause=pause, keeps_order=keeps_order)
        in_transaction(self.engine, note)

    def _read_given(self, taken: TakenCertificate) -> None:
        from traffic.certificates.x509 import read_certificate  # noqa: PLC0415 -- cryptography, which few workers need

        chain, key = self._read(taken, taken.settings.certificate), self._read(taken, taken.settings.key)
        now, host = datetime.now(UTC), self.secrets.host
        facts = read_certificate(chain, key, now)
        is_older = taken.not_before is not None and facts.not_before < taken.not_before
        if taken.is_read and taken.read_by != host and is_older:
            raise UnreadCertificateError(f"host {taken.read_by} has a newer one")
        is_good = taken.not_after is not None and now < taken.not_after
        if why := why_unfit(facts.names, taken.names if is_good else (), taken.hosts):
            raise UnfitCertificateError(why)
        if facts.doubt is not None and is_good and taken.doubt is None and chain != taken.chain:
            raise UnfitCertificateError(facts.doubt)
        sealed = self._ordering.seal.closed(key)
        new = NewCertificate(chain, sealed, facts.names, facts.not_before, facts.not_after, facts.doubt, read_by=host)
        self._write(taken, new)

    def _read_authorities(self, taken: TakenCertificate, reference: str | None) -> None:
        from traffic.certificates.x509 import check_authorities  # noqa: PLC0415 -- cryptography, which few workers need

        text = self._read(taken, reference)
        check_authorities(text)
        self._write(taken, NewCertificate(text, None, (), None, None, read_by=self.secrets.host))

    def _read(self, taken: TakenCertificate, reference: str | None) -> str:
        try:
            return self.secrets.read(SecretReference(secret=reference or ""), taken.deployment)
        except SecretFaultError as error:
            raise UnreadCertificateError(f"host {self.secrets.host} cannot read {reference}: {error}") from None

    def _write(self, taken: TakenCertificate, new: NewCertificate) -> None:
        due_at = datetime.now(UTC) + _AGAIN
        if new.chain == taken.chain:
            in_transaction(self.engine, partial(note_same, taken=taken, read_by=self.secrets.host, due_at=due_at))
        else:
            in_transaction(self.engine, partial(note_certificate, taken=taken, new=new, due_at=due_at))

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
