"""Certificates are read, ordered and renewed by whichever worker comes first, from a thread of its own."""

import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial

import structlog
from sqlalchemy import Engine

from certificates.settings import CertificateSettings
from db.certificates.turns import (
    NewCertificate,
    TakenCertificate,
    leave,
    note_certificate,
    note_fault,
    note_same,
    take_due,
)
from db.connection.engine import in_transaction
from domain.revisions.secrets import SecretReference
from domain.traffic.shown import why_unfit
from domain.traffic.tls import CertificateKind
from domain.words.errors import RollwayError
from runtime.secrets import HostSecrets, SecretFaultError
from tasks.hosts.looking import keep_looking
from tasks.hosts.ordering import LEASE, Ordering

_LOOK_SECONDS = 5.0
_AGAIN = timedelta(seconds=30)
"""What a file holds is read again so often."""
_SOON = timedelta(seconds=10)
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
        from certificates.facts import read_certificate  # noqa: PLC0415 -- cryptography, which few workers need

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
        from certificates.facts import check_authorities  # noqa: PLC0415 -- cryptography, which few workers need

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
