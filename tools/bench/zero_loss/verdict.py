"""Which failures are allowed, and whether each phase kept its promise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cli.demo.load.tally import FailedRequest, FailureKind, PhaseReport, quantile
from tools.bench.zero_loss.phases import NOTHING, Noted, Phase

Drained = Sequence[tuple[float, float | None]]
"""As `Service.drains` tells them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drains:
    """Seconds from the decision to drain a route until the last proxy had acknowledged it. `never`: those without."""

    count: int
    never: int
    p50: float
    p99: float
    worst: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseVerdict:
    """A phase after the run. `broken`: the sentences that say what was not as promised; none is a success.

    `overlap`: seconds from the first request that the new revision answered to the last one that the old did,
    by when they were sent; negative when there is a gap. `old_after_promotion`: how long after the proxies' word.
    """

    phase: str
    title: str
    counts: bool
    seconds: float
    load: PhaseReport
    allowed: int
    forbidden: int
    drains: Drains
    overlap: float | None
    old_after_promotion: float | None
    broken: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Played:
    """An act that was played, in so many seconds. `error`: why it did not come to its end, one sentence."""

    phase: Phase
    seconds: float
    noted: Noted = NOTHING
    error: str = ""


def judge(played: Played, load: PhaseReport, drains: Drained) -> PhaseVerdict:
    """Compare what happened with what was promised. `drains`: of all phases."""
    noted = played.noted
    allowed = sum(is_allowed(failure, noted) for failure in load.failures)
    forbidden = sum(load.failed.values()) - allowed
    old, new = _old_and_new(load, noted.old)
    late = None if old is None or noted.promoted_at is None else old[1] - noted.promoted_at
    return PhaseVerdict(
        phase=played.phase.name,
        title=played.phase.title,
        counts=played.phase.counts,
        seconds=load.ended_at - load.began_at,
        load=load,
        allowed=allowed,
        forbidden=forbidden,
        drains=drains_within([load], drains),
        overlap=None if old is None or new is None else old[1] - new[0],
        old_after_promotion=late,
        broken=tuple(_broken(played, load, forbidden, late)),
    )


def _broken(played: Played, load: PhaseReport, forbidden: int, late: float | None) -> Iterator[str]:
    noted = played.noted
    if played.error:
        yield played.error
    if forbidden:
        yield f"{forbidden:,} of {load.requests:,} requests failed"
    if late is not None and late > 0:
        yield f"{noted.old} was still asked {late * 1000:.0f} ms after the proxies' word that it is out"
    if noted.never in load.revisions:
        yield f"{noted.never}, which was never healthy, answered {load.revisions[noted.never].answers:,} requests"
    met = [failure.failed_at for failure in load.failures if _is_of_canary(failure, noted)]
    if met and (seconds := max(met) - min(met)) > _CANARY_SECONDS:
        yield f"{noted.fails} was still asked {seconds:.1f} s after its first failure"


def is_allowed(failure: FailedRequest, noted: Noted) -> bool:
    """What a failing canary answered, and what must not be sent twice and met a replica that was killed or hung.

    It was in flight when the replica was killed with -9, or was sent while it hung. On which replica a request was that
    got no answer nobody can tell; but no other replica ended or hung then. Of a killed Envoy it is what was under way,
    and what began before somebody listened in its place.
    """
    if _is_of_canary(failure, noted):
        return True
    if noted.away is not None:
        killed_at, back_at = noted.away
        began_at = failure.due_at if failure.started_at is None else failure.started_at
        return began_at <= back_at and killed_at - _DYING <= failure.failed_at
    if failure.idempotent or failure.started_at is None:
        return False
    if noted.frozen is not None:
        froze_at, noticed_at = noted.frozen
        return failure.started_at <= noticed_at + _DYING and froze_at <= failure.failed_at
    return noted.killed_at is not None and failure.started_at <= noted.killed_at <= failure.failed_at + _DYING


def drains_within(phases: Sequence[PhaseReport], drains: Drained) -> Drains:
    """Of the routes that were drained in these phases."""
    times = [took for at, took in drains if any(phase.began_at <= at < phase.ended_at for phase in phases)]
    acknowledged = sorted(took for took in times if took is not None)
    return Drains(
        count=len(times),
        never=len(times) - len(acknowledged),
        p50=quantile(acknowledged, 0.5),
        p99=quantile(acknowledged, 0.99),
        worst=quantile(acknowledged, 1.0),
    )


# A killed process is cut off before it can be seen to be gone, and what the prober has noticed reaches proxies a moment
# later.
_DYING = 0.5
_CANARY_SECONDS = 5.0


def _is_of_canary(failure: FailedRequest, noted: Noted) -> bool:
    is_answer = failure.kind is FailureKind.STATUS and failure.detail.startswith("500 ")
    return is_answer and bool(noted.fails) and f'"revision": "{noted.fails}"' in failure.detail


def _old_and_new(load: PhaseReport, old: str) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
    """First and last time that a request was sent which the old revision answered, and the new ones."""
    before = [(seen.first_started, seen.last_started) for name, seen in load.revisions.items() if name == old]
    after = [(seen.first_started, seen.last_started) for name, seen in load.revisions.items() if name != old]
    return (before[0] if before else None), (min(after) if after and old else None)
