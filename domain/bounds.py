"""What a phase is held to, and how that hardens a verdict.

SUCCESS                                      -> success
otherwise, waiting for a person, or held     -> the verdict itself, clocks stopped
otherwise, a deadline has passed             -> EXPIRED
otherwise, too many failed routes or errors  -> GIVE_UP
otherwise                                    -> the verdict itself
"""

from dataclasses import dataclass
from datetime import datetime

from domain.changes import Decision
from domain.model import Verdict
from domain.numbers import number_of

MAX_ATTEMPTS = 5
"""Errors in a row after which a phase is given up."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """`what` completes the sentence "... has passed"."""

    at: datetime
    what: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a handler holds a deployment to: deadlines, and failed routes out of those allowed.

    `last_failure`: why the last new replica failed, for whoever reads how it ended.
    """

    deadlines: tuple[Deadline, ...] = ()
    failed_routes: int = 0
    failures_allowed: int | None = None
    last_failure: str | None = None


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
