"""What a phase is held to, and how that hardens a verdict.

SUCCESS                                      -> success
otherwise, waiting for a person, or held     -> the verdict itself, clocks stopped
otherwise, a deadline has passed             -> EXPIRED
otherwise, too many failed routes or errors  -> GIVE_UP
otherwise                                    -> the verdict itself
"""

from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple, Protocol

from domain.model.changes import Decision
from domain.model.deployment import Verdict
from domain.model.policy import RolloutLimits
from domain.words.numbers import number_of

MAX_ATTEMPTS = 5
"""Errors in a row after which a phase is given up."""


class Deadline(NamedTuple):
    """`what` completes the sentence "... has passed"."""

    at: datetime
    what: str


class Bounds(NamedTuple):
    """What a handler holds a deployment to: deadlines, and failed routes out of those allowed.

    `last_failure`: why the last new replica failed, for whoever reads how it ended.
    """

    deadlines: tuple[Deadline, ...] = ()
    failed_routes: int = 0
    failures_allowed: int | None = None
    last_failure: str | None = None


class Limited(Protocol):
    """What the bounds of a rollout are read from: a Rollout has it, and so has a row of one."""

    @property
    def deadline(self) -> datetime:
        """When the timeout ends."""

    @property
    def last_progress_at(self) -> datetime:
        """When the rollout last got further: when an old route was drained."""

    @property
    def failed_routes(self) -> int:
        """How many new ones failed."""

    @property
    def last_failure(self) -> str | None:
        """Why the last of them did."""


def bounds_of(rollout: Limited, limits: RolloutLimits, desired: int) -> Bounds:
    """What a rollout of `desired` replicas is held to."""
    deadlines: tuple[Deadline, ...] = (Deadline(rollout.deadline, _timeout(limits.timeout_seconds)),)
    if limits.progress_timeout_seconds is not None:
        ends = rollout.last_progress_at + timedelta(seconds=limits.progress_timeout_seconds)
        deadlines += (Deadline(ends, f"the {limits.progress_timeout_seconds:g} s allowed without progress"),)
    return Bounds(deadlines, rollout.failed_routes, limits.failures_allowed(desired), rollout.last_failure)


@lru_cache(maxsize=64)  # of a whole fleet's cycles hardly one needs the sentence
def _timeout(seconds: float) -> str:
    return f"the timeout of {seconds:g} s"


def hardened(decision: Decision, bounds: Bounds, attempts: int, now: datetime) -> tuple[Verdict, str]:
    """The final verdict and its reason. `attempts`: errors in a row."""
    if decision.verdict is Verdict.SUCCESS or decision.waits_for_person:
        return decision.verdict, decision.reason
    for deadline in bounds.deadlines:
        if now >= deadline.at:
            return Verdict.EXPIRED, f"{deadline.what} has passed; last: {decision.reason}{_failure(bounds)}"
    if bounds.failures_allowed is not None and bounds.failed_routes >= bounds.failures_allowed:
        why = f"{number_of(bounds.failed_routes, 'new replica')} failed, the limit is {bounds.failures_allowed}"
        return Verdict.GIVE_UP, f"{why}; last: {bounds.last_failure or decision.reason}"
    if attempts >= MAX_ATTEMPTS:
        return Verdict.GIVE_UP, f"{attempts} errors in a row; last: {decision.reason}"
    gives_up = decision.verdict is Verdict.GIVE_UP
    return decision.verdict, f"{decision.reason}{_failure(bounds)}" if gives_up else decision.reason


def _failure(bounds: Bounds) -> str:
    return f"; a new replica failed: {bounds.last_failure}" if bounds.last_failure else ""
