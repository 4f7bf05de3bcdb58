"""Hosts are asked whether they can have the secrets of a revision, and answer from a thread of their own."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.replicas.secret_requests import Share, TakenSecret, answer, ask_for_secrets, secret_checks, take_secrets
from domain.revisions.secret_refs import SecretCheck, SecretReference
from runtime.host_secrets import COMMAND_SECONDS, HostSecrets
from tasks.hosts.background import keep_looking

PATIENCE_SECONDS = COMMAND_SECONDS + 3
"""The seconds to wait for answers: a host looks once a second, and a command has its own time."""

_LOOK_SECONDS = 1.0
AGAIN_AFTER = timedelta(seconds=10)
"""The time after which a host looks again at secrets that it lacks."""
_ASK_AGAIN_SECONDS = 0.05
_AT_ONCE = 8
"""Programs that a worker runs, each in a thread of its own; a deployment has half of them at the most."""
_LEASE = timedelta(seconds=3 * COMMAND_SECONDS)
_PROGRAMS = Share(are_commands=True, limit=1, most=_AT_ONCE // 2, lease=_LEASE)
_FILES = Share(are_commands=False, limit=16, most=16, lease=_LEASE)
"""Files and variables never wait for a program."""


def check_secrets(
    engine: Engine, deployment: str, references: Sequence[str], patience_seconds: float = PATIENCE_SECONDS
) -> list[SecretCheck]:
    """The answers of hosts that may get replicas, once all have answered or the patience is over.

    Raises TooManySecretsError.
    """
    if not references:
        return []
    in_transaction(engine, partial(ask_for_secrets, deployment=deployment, references=references))
    ends_at = time.monotonic() + patience_seconds
    while True:
        checks = in_transaction(engine, partial(secret_checks, deployment=deployment, references=references))
        if all(check.is_answered for check in checks) or time.monotonic() > ends_at:
            return checks
        time.sleep(_ASK_AGAIN_SECONDS)


@dataclass(frozen=True, slots=True)
class SecretAnswers:
    """The answers of one worker, for its host, until it ends."""

    engine: Engine
    secrets: HostSecrets
    until: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        """Look at what the host was asked for, and again at what it lacked. Raises what Postgres raises."""
        self.look_at_files()
        self.run_programs()

    def look_at_files(self) -> None:
        """Look some at a time, so that however much somebody asks for, each is answered soon after it was looked at."""
        while checks := self._take(_FILES):
            self._answer(checks)

    def run_programs(self) -> None:
        """Run each by itself: a slow one occupies only its own place, and the free places continue."""
        first = self._take(_PROGRAMS)
        if not first:
            return
        under_way = [first]

        def run(checks: list[TakenSecret]) -> None:
            while checks or under_way:
                if checks:
                    try:
                        self._answer(checks)
                    finally:
                        under_way.remove(checks)
                else:
                    time.sleep(_LOOK_SECONDS / 2)
                if checks := self._take(_PROGRAMS):
                    under_way.append(checks)

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for future in [pool.submit(run, batch) for batch in (first, *([],) * (_AT_ONCE - 1))]:
                future.result()

    def _take(self, share: Share) -> list[TakenSecret]:
        if self.until.is_set():
            return []
        host = self.secrets.host
        return in_transaction(self.engine, partial(take_secrets, host=host, again_after=AGAIN_AFTER, share=share))

    def _answer(self, checks: Sequence[TakenSecret]) -> None:
        answers = [(*secret, self._fault(secret)) for secret in checks]
        in_transaction(self.engine, partial(answer, host=self.secrets.host, answers=answers))

    def _fault(self, check: TakenSecret) -> str | None:
        """A reference that a newer release wrote may be of a kind that this one does not know."""
        try:
            return self.secrets.fault_of(SecretReference(secret=check.reference), check.asked_by)
        except ValueError:
            return "this release of Rollway cannot read it"


class Answering(NamedTuple):
    """The threads that answer, and what makes them look."""

    threads: list[threading.Thread]
    bells: list[threading.Event]

    def ring(self) -> None:
        for bell in self.bells:
            bell.set()


def keep_answering(engine: Engine, secrets: HostSecrets, until: threading.Event) -> Answering:
    """Look whenever it is rung for, from threads of their own: a command may take its time.

    A host without requests looks at nothing: its heartbeat finds out whether there are any.
    """
    answers, trouble = SecretAnswers(engine, secrets, until), "secrets not looked at"
    bells = [threading.Event(), threading.Event()]
    looks = [("secrets", answers.look_at_files), ("secrets of programs", answers.run_programs)]
    threads = [
        keep_looking(partial(_when_rung, bell, look), 0, until, name=name, trouble=trouble, host=secrets.host)
        for bell, (name, look) in zip(bells, looks, strict=True)
    ]
    return Answering(threads, bells)


def _when_rung(bell: threading.Event, look: Callable[[], None]) -> None:
    bell.wait()
    bell.clear()
    look()
