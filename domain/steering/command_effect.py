"""The arguments of a command, and its effect on a deployment: plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

from domain.cycle.evaluator import EVALUATOR
from domain.cycle.rollout import guard_of
from domain.model.deployment import Deployment
from domain.model.states import RolloutOutcome
from domain.strategies.budget import Budget
from domain.text.errors import UnavailableError
from domain.text.numbers import duration


@dataclass(frozen=True, slots=True)
class Context:
    """The asker with reason, as in "by ann: it leaks"; the database's time; the id of a rollout, should one begin."""

    why: str
    at: datetime
    rollout_id: UUID


@dataclass(frozen=True, slots=True)
class Effect:
    """The next snapshot of the deployment, and the sentence for its history.

    `already`: it was so before, and nothing is written. `ended`: how the rollout ended that ran until now.
    `back_reason`: why the rollout turned back. `gives_up_replicas`: those that are left are taken as stopped.
    `details`: further fields of the answer. `waits_for`: the command that a person must type for the rollout, as
    the next look will find it. `guard`: what Postgres holds the rollout to; None where none runs.
    """

    deployment: Deployment
    sentence: str
    already: bool = False
    ended: RolloutOutcome | None = None
    back_reason: str | None = None
    gives_up_replicas: bool = False
    details: Mapping[str, object] = field(default_factory=dict)
    waits_for: str | None = None
    guard: Budget | None = None

    @classmethod
    def to(
        cls,
        deployment: Deployment,
        sentence: str,
        *,
        ended: RolloutOutcome | None = None,
        back_reason: str | None = None,
    ) -> Self:
        """A change: the deployment's next version."""
        return cls(replace(deployment, version=deployment.version + 1), sentence, ended=ended, back_reason=back_reason)

    @classmethod
    def unchanged(cls, deployment: Deployment) -> Self:
        """Asked for before, or true anyway."""
        return cls(deployment, "", already=True)

    def with_details(self, **details: object) -> Self:
        return replace(self, details={**self.details, **details})

    def finished(self, now: datetime) -> Self:
        """Add the wait and the budget of the rollout that runs from now on, which the writer only copies."""
        rollout = self.deployment.rollout
        if self.already or rollout is None:
            return self
        wait = EVALUATOR.wait_of(self.deployment, now) if rollout.clock_stopped_at else None
        waits_for = wait.awaited_verb if wait else None
        return replace(self, waits_for=waits_for, guard=guard_of(self.deployment))


class HeldError(UnavailableError):
    """Another session holds the rows that the command changes; PostgreSQL itself answers."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The session that holds a deployment's row. None where Postgres does not show it, or it has just ended.

    `program`: as it calls itself, with its host and process where it is ours. `held_for`: how long its
    transaction has gone on.
    """

    process: int | None = None
    program: str | None = None
    held_for: timedelta | None = None

    def sentence(self, deployment: str) -> str:
        """A sentence such as "web has been held for 40 s by rollway worker1 4711, process 123 of PostgreSQL"."""
        if self.process is None:
            return f"{deployment} is held by another session"
        time = f" for {duration(self.held_for)}" if self.held_for is not None else ""
        program = f"{self.program}, " if self.program else ""
        return f"{deployment} has been held{time} by {program}process {self.process} of PostgreSQL"


def refusal(deployment: str, holder: Holder) -> HeldError:
    """The refusal, which says that only a later try can succeed."""
    end = f"; 'SELECT pg_terminate_backend({holder.process})' ends it" if holder.process is not None else ""
    return HeldError(f"{holder.sentence(deployment)}; ask again when it is done{end}", deployment=deployment)
