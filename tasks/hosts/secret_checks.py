"""Hosts are asked whether they can have the secrets of a revision, and answer from a thread of their own."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Engine

from db.connection.engine import in_transaction
from db.replicas.secrets import answer, ask_for_secrets, secret_checks, secrets_to_check
from domain.revisions.secrets import SecretCheck, SecretReference
from runtime.secrets.host_secrets import COMMAND_SECONDS, HostSecrets
from tasks.hosts.looking import keep_looking

PATIENCE_SECONDS = COMMAND_SECONDS + 3
"""How long answers are waited for: a host looks once a second, and a command has its own time."""

_LOOK_SECONDS = 1.0
_AGAIN_AFTER_SECONDS = 10.0
_ASK_AGAIN_SECONDS = 0.05
_THREADS = 8
_AT_ONCE = 16


def ask_hosts(
    engine: Engine, references: Sequence[str], patience_seconds: float = PATIENCE_SECONDS
) -> list[SecretCheck]:
    """Return what the hosts that may get replicas say, once all have answered or the patience is over."""
    if not references:
        return []
    in_transaction(engine, partial(ask_for_secrets, references=references))
    ends_at = time.monotonic() + patience_seconds
    while True:
        checks = in_transaction(engine, partial(secret_checks, references=references))
        if all(check.is_answered for check in checks) or time.monotonic() > ends_at:
            return checks
        time.sleep(_ASK_AGAIN_SECONDS)


@dataclass(frozen=True, slots=True)
class SecretAnswers:
    """The answers of one worker, for its host."""

    engine: Engine
    secrets: HostSecrets

    def look(self) -> None:
        """Look at what the host was asked for, and again at what it lacked. Raises what Postgres raises.

        Some at a time, so that however much somebody asks for, each is answered soon after it was looked at.
        """
        while self._look_at_some():
            pass

    def _look_at_some(self) -> bool:
        again, host = _AGAIN_AFTER_SECONDS, self.secrets.host
        find = partial(secrets_to_check, host=host, again_after_seconds=again, limit=_AT_ONCE)
        asked = in_transaction(self.engine, find)
        if not asked:
            return False
        with ThreadPoolExecutor(_THREADS) as pool:
            faults = pool.map(self._fault, (secret.reference for secret in asked))
            answers = [(*secret, fault) for secret, fault in zip(asked, faults, strict=True)]
        in_transaction(self.engine, partial(answer, host=host, answers=answers))
        return len(asked) == _AT_ONCE

    def _fault(self, reference: str) -> str | None:
        """A reference that a newer release wrote may be of a kind that this one does not know."""
        try:
            return self.secrets.fault_of(SecretReference(secret=reference))
        except ValueError:
            return "this release of Rollway cannot read it"


def keep_answering(engine: Engine, secrets: HostSecrets, until: threading.Event) -> threading.Thread:
    """Look once a second, from a thread of its own: a command may take its time."""
    look, trouble = SecretAnswers(engine, secrets).look, "secrets not looked at"
    return keep_looking(look, _LOOK_SECONDS, until, name="secrets", trouble=trouble, host=secrets.host)
