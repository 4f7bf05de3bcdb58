"""An order at an authority, from the account to the certificate: whoever comes after a crash goes on with it.

account ─► order ─► challenge ─► every live proxy answers it ─► the authority looks ─► certificate
noted      noted    noted                                                              noted
"""

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from certificates.settings import CertificateSettings
from db.certificates.orders import (
    account_at,
    forget_account,
    note_account,
    note_challenge,
    note_order,
    proxies_of_challenge,
)
from db.certificates.turns import NewCertificate, TakenCertificate, hold, note_certificate
from db.connection.engine import in_transaction
from domain.traffic.shown import ANY_HOST
from domain.traffic.tls import asked_again_after, renewed_at, tried_again_after
from domain.words.errors import RollwayError

if TYPE_CHECKING:
    from certificates.authority import Authority, Order, WantedProof
    from certificates.sealing import KeySeal

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
        from certificates.sealing import KeySeal  # noqa: PLC0415 -- cryptography, which few workers need

        if self.settings.key is None:
            raise RollwayError(
                "ROLLWAY_CERTIFICATE_KEY is not set for the workers, so no certificate's key can be kept"
            )
        return KeySeal(self.settings.key)

    def go_on(self, taken: TakenCertificate) -> None:
        """Go on with the order of a certificate, or order it; note it, or why there is none."""
        from certificates import refusals as at  # noqa: PLC0415 -- the library, which few workers need

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
        from certificates.authority import AcmeAccount, Authority, new_key  # noqa: PLC0415 -- as above

        directory, trusted = self.settings.directory, self.settings.authorities
        known = in_transaction(self.engine, partial(account_at, directory=directory))
        if known is None:
            made = Authority(directory, AcmeAccount(new_key()), trusted).register(self.settings.email)
            note = partial(note_account, directory=directory, sealed_key=self.seal.closed(made.key), url=made.url)
            known = in_transaction(self.engine, note)
        account = AcmeAccount(self.seal.opened(known[0]), known[1])
        return Authority(directory, account, trusted, self.settings.challenge)

    def _order(self, authority: "Authority", taken: TakenCertificate) -> "Order":
        from certificates.authority import Order  # noqa: PLC0415 -- as above

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
        from certificates.facts import read_certificate  # noqa: PLC0415 -- as above

        facts = read_certificate(chain, order.key, datetime.now(UTC))
        sealed = self.seal.closed(order.key)
        new = NewCertificate(chain, sealed, facts.names, facts.not_before, facts.not_after, facts.doubt)
        due_at = renewed_at(facts.not_before, facts.not_after)
        in_transaction(self.engine, partial(note_certificate, taken=taken, new=new, due_at=due_at))


class _NotYetError(RollwayError):
    """The order goes on later; nothing was refused."""
