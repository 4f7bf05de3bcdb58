"""A rollout rehearsed: many runs of the world with drawn times and failures, and what came of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Self

from pydantic import TypeAdapter

from domain.foresight.plan.course import Course, course
from domain.foresight.plan.drawn import Draw, LearnedFates
from domain.foresight.plan.subject import Subject
from domain.foresight.rehearsal.learned import Learned, Span, quantile
from domain.model.states import READY

_SHARES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
_REASONS = 3
_BEYOND = 0.05
"""The share of rollouts that end sooner than the band, and as many later."""
_OF_A_CHANGE = 2
"""So many rollouts show one change."""


@dataclass(frozen=True, slots=True)
class Band:
    """Nine of ten such rollouts end from `low` to `high` seconds after the beginning: one in twenty sooner, one later.

    A short past shows less than there is. Where it shows `taught` changes from one rollout to the next, the next one
    is expected below the k-th of them in `k / (taught + 1)` of all cases: so the band of a short past is wider.
    """

    low: float
    high: float

    @classmethod
    def of(cls, ordered: Sequence[float], taught: int) -> Self:
        """Sum up the times of some runs; at least one is needed."""
        beyond = max(0.0, (_BEYOND * (taught + 1) - 1) / (taught - 1)) if taught > 1 else 0.0
        return cls(quantile(ordered, beyond), quantile(ordered, 1 - beyond))


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The outcomes of `runs` runs: how many completed, went back or never rested; all times in seconds.

    `done`: by the share of all runs that was done by then, such as {"p50": 12.0}; None where so many were never done.
    `fewest_serving`: how many runs had at worst so many serving. `why_back`: the most frequent reasons.
    `learned_starts`: from how many past starts the times are.
    """

    runs: int
    completed: int
    went_back: int
    unsettled: int
    done: dict[str, float | None]
    band: Band | None
    span: Span | None
    fewest_serving: dict[int, int]
    most_live: int
    why_back: tuple[str, ...]
    failure_rate: float
    is_learned: bool
    learned_starts: int
    seconds: tuple[float, ...]

    @property
    def chance_to_go_back(self) -> float:
        """From 0 to 1."""
        return self.went_back / self.runs

    def chance_to_be_done_by(self, seconds: float) -> float:
        """The share of all runs that had completed after so many seconds, from 0 to 1."""
        return sum(took <= seconds for took in self.seconds) / self.runs

    def as_json(self) -> dict[str, Any]:
        """The rehearsal as plain JSON values, with the chance to go back, and without the single times."""
        document: dict[str, Any] = _adapter().dump_python(self, mode="json", exclude={"seconds"})
        return {**document, "chance_to_go_back": self.chance_to_go_back}


def rehearse(subject: Subject, now: datetime, learned: Learned, draw: Draw, runs: int) -> Rehearsal:
    """Run what follows from the snapshot so often, at least once, each time with other times and other failures."""
    replicas = subject.deployment.desired_replicas
    fates = (LearnedFates(learned=learned, draw=draw, fails=True, replicas=replicas) for _ in range(runs))
    courses = [course(subject.deployment, now, each) for each in fates]
    return _of_courses(courses, learned, taught=len(learned.starts) // max(1, _OF_A_CHANGE * replicas))


def _of_courses(courses: Sequence[Course], learned: Learned, taught: int) -> Rehearsal:
    back = [run.back_reason for run in courses if run.back_reason is not None]
    done = sorted(run.seconds for run in courses if run.seconds is not None and _completed(run))
    reasons = Counter(reason.partition(";")[0] for reason in back)
    return Rehearsal(
        runs=len(courses),
        completed=len(done),
        went_back=len(back),
        unsettled=len(courses) - len(done) - len(back),
        done={f"p{share * 100:.0f}": _done_by(done, share, len(courses)) for share in _SHARES},
        band=Band.of(done, taught) if done else None,
        span=Span.of(done) if done else None,
        fewest_serving=dict(sorted(Counter(run.fewest_serving for run in courses).items())),
        most_live=max(run.most_live for run in courses),
        why_back=tuple(reason for reason, _ in reasons.most_common(_REASONS)),
        failure_rate=learned.failure_rate,
        is_learned=bool(learned.starts),
        learned_starts=len(learned.starts),
        seconds=tuple(done),
    )


def _completed(run: Course) -> bool:
    return run.back_reason is None and run.end.status == READY and run.end.degraded_reason is None


def _done_by(done: Sequence[float], share: float, runs: int) -> float | None:
    """Return when this share of all runs was done; those that never were count as later than any."""
    place = int(share * (runs - 1))
    return done[place] if place < len(done) else None


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Rehearsal]:
    return TypeAdapter(Rehearsal)
