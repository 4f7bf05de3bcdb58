"""The limits of a phase, and how they replace a verdict. The first line that applies gives the final verdict.

the decision is SUCCESS                 -> SUCCESS
it waits for a person, or is held       -> its own verdict; its deadlines stand still
a deadline has passed                   -> EXPIRED
too many failed routes, or 5 errors
in a row                                -> GIVE_UP
otherwise                               -> its own verdict
"""

from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple, Protocol

from domain.model.decision import Decision
from domain.model.policy import DeploymentPolicy, RolloutLimits
from domain.model.states import Verdict
from domain.text.numbers import number_of

MAX_ATTEMPTS = 5


class Deadline(NamedTuple):
    """A time limit. `what` completes the sentence "... has passed"."""

    at: datetime
    what: str


class Bounds(NamedTuple):
    """The limits of one phase: its deadlines, and how many new replicas failed and may fail.

    `last_failure`: why the last new replica failed.
    """

    deadlines: tuple[Deadline, ...] = ()
    failed_routes: int = 0
    failures_allowed: int | None = None
    last_failure: str | None = None


class Limited(Protocol):
    """The fields that a rollout's limits need. A Rollout and a row of `rollouts` have them."""

    @property
    def deadline(self) -> datetime:
        """End of the timeout."""

    @property
    def last_progress_at(self) -> datetime:
        """When an old route was last drained, or a new replica came up."""

    @property
    def failed_routes(self) -> int:
        """Failed new replicas."""

    @property
    def last_failure(self) -> str | None:
        """Why the last new replica failed."""


class RouteCounts(NamedTuple):
    """Live routes of the new revision, as Postgres counts them. `idle`: without traffic."""

    starting: int
    healthy: int
    idle: int


class Glimpse(NamedTuple):
    """A glance's view of a deployment in a rollout.

    `stands`: the rollout is paused or held, or its deadlines stood still until now.
    """

    rollout: Limited
    policy: DeploymentPolicy
    desired: int
    counts: RouteCounts
    stands: bool


def bounds_of(rollout: Limited, limits: RolloutLimits, desired: int) -> Bounds:
    deadlines: tuple[Deadline, ...] = (Deadline(rollout.deadline, _timeout(limits.timeout_seconds)),)
    if limits.progress_timeout_seconds is not None:
        ends = rollout.last_progress_at + timedelta(seconds=limits.progress_timeout_seconds)
        deadlines += (Deadline(ends, f"the {limits.progress_timeout_seconds:g} s allowed without progress"),)
    return Bounds(deadlines, rollout.failed_routes, limits.failures_allowed(desired), rollout.last_failure)


@lru_cache(maxsize=64)
def _timeout(seconds: float) -> str:
    return f"the timeout of {seconds:g} s"


def hardened(decision: Decision, bounds: Bounds, attempts: int, now: datetime) -> tuple[Verdict, str]:
    """The final verdict and its reason. `attempts`: errors in a row."""
    if decision.verdict is Verdict.SUCCESS or decision.clock_stopped:
        return decision.verdict, decision.reason
    if (deadline := passed(bounds, now)) is not None:
        return Verdict.EXPIRED, f"{deadline.what} has passed; last: {decision.reason}{_failure(bounds)}"
    if bounds.failures_allowed is not None and bounds.failed_routes >= bounds.failures_allowed:
        why = f"{number_of(bounds.failed_routes, 'new replica')} failed, the limit is {bounds.failures_allowed}"
        return Verdict.GIVE_UP, f"{why}; last: {bounds.last_failure or decision.reason}"
    if attempts >= MAX_ATTEMPTS:
        return Verdict.GIVE_UP, f"{attempts} errors in a row; last: {decision.reason}"
    gives_up = decision.verdict is Verdict.GIVE_UP
    return decision.verdict, f"{decision.reason}{_failure(bounds)}" if gives_up else decision.reason


def passed(bounds: Bounds, now: datetime) -> Deadline | None:
    for deadline in bounds.deadlines:
        if now >= deadline.at:
            return deadline
    return None


def _failure(bounds: Bounds) -> str:
    return f"; a new replica failed: {bounds.last_failure}" if bounds.last_failure else ""
