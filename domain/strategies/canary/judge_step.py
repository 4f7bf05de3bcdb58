"""Asks a canary's judge at its present step: give up, continue, or look on."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from domain.judge.judge import Found, Judged, judge, judge_copies, needed, over_at, still_needed
from domain.judge.judge_spec import Judge
from domain.model.canary import CanaryState
from domain.model.decision import Decision, Waits, WaitsFor
from domain.strategies.budget import Buckets, Budget, surge_budget
from domain.strategies.canary.steps import CanarySpec, size_at
from domain.strategies.messages import for_replicas, steps
from domain.text.numbers import duration, percent

EVERY_SECONDS = 1


@dataclass(frozen=True, slots=True)
class Judgement:
    """`next_at`: the next look. `harms`: it gives up because callers are harmed, not because it is undecided.

    `sentence`: the verdict so far; `undecided`: that it stays so, in words; `missing`: what would decide it.
    `decides`: from when the judge, and nobody else, may say that the step is over, and when it gives up; else empty.
    """

    sentence: str = ""
    undecided: str = ""
    missing: str = ""
    gives_up: bool = False
    is_over: bool = False
    decides: tuple[datetime, ...] = ()
    next_at: datetime | None = None
    harms: bool = False

    @property
    def reason(self) -> str:
        """The reason to continue, or to give up."""
        return f"{self.undecided}: {self.sentence}" if self.undecided else self.sentence


def _of_copies(canary: CanaryState, spec: CanarySpec, now: datetime) -> Judgement:
    since, next_at = canary.weight_known_at or now, now + timedelta(seconds=EVERY_SECONDS)
    verdict = judge_copies(spec.judge, canary.evidence, since)
    if spec.judge is None or not spec.judge.dry_run:
        is_harm = verdict.finding is Found.HARM
        return Judgement(verdict.sentence, gives_up=is_harm, next_at=next_at, harms=is_harm)
    return _on_a_dry_run(verdict, next_at)


def _on_a_dry_run(verdict: Judged, next_at: datetime) -> Judgement:
    return Judgement(f"its judge, on a dry run, finds: {verdict.finding.value}, {verdict.sentence}", next_at=next_at)


def judgement(canary: CanaryState, spec: CanarySpec, now: datetime) -> Judgement:
    """The judgement about a canary that has a weight, or gets copies.

    copies, and harm                                 -> give up
    copies                                           -> the sentence counts those that failed
    no judge, or no weight yet                       -> nothing is said
    a dry run                                        -> it is said, and decides nothing
    harm                                             -> give up, at once
    undecided for good, and then: abort              -> give up, as old ones can answer
    good enough; or undecided for good, then promote -> the step is over
    undecided for good, then hold                    -> a person says so
    otherwise                                        -> look on
    """
    settings = spec.judge
    if spec.mirror and canary.stage and not canary.weight:
        return _of_copies(canary, spec, now)
    if settings is None or not canary.weight:
        return Judgement()
    since = canary.weight_known_at or now
    verdict = judge(settings, canary.evidence, since, now, had_copies=spec.mirror is not None)
    next_at = now + timedelta(seconds=EVERY_SECONDS)
    if settings.dry_run:
        return _on_a_dry_run(verdict, next_at)
    then = _then(verdict, settings)
    undecided, more = "", ""
    if verdict.finding is Found.GIVEN_UP:
        undecided = f"undecided after {duration(timedelta(seconds=settings.at_most.seconds))}"
    if verdict.finding is Found.UNDECIDED:
        more = still_needed(settings, canary.evidence, since, now)
    may_at = since + timedelta(seconds=settings.at_least.seconds)
    return Judgement(
        verdict.sentence,
        undecided,
        "; ".join(filter(None, (verdict.missing, more))),
        gives_up=then == "abort",
        is_over=then == "promote",
        decides=(may_at, over_at(settings, since)) if then == "look on" else (),
        next_at=next_at,
        harms=verdict.finding is Found.HARM,
    )


def _then(verdict: Judged, settings: Judge) -> str:
    match verdict.finding:
        case Found.HARM:
            return "abort"
        case Found.GOOD:
            return "promote"
        case Found.GIVEN_UP:
            return settings.if_undecided
        case Found.UNDECIDED:
            return "look on"


_UNDECIDED = {"hold": "waits for a person", "promote": "continues", "abort": "goes back"}


def cautions(spec: CanarySpec, desired: int) -> Iterator[str]:
    """Yield when its judge decides, and each doubt; nothing without one."""
    judge = spec.judge
    if judge is None:
        return
    soonest, latest = (duration(timedelta(seconds=bound.seconds)) for bound in (judge.at_least, judge.at_most))
    yield (
        f"its judge says when it continues: at each weight after {soonest} and {judge.at_least.requests:,} requests "
        f"at the soonest; undecided after {latest} it {_UNDECIDED[judge.if_undecided]}"
    )
    yield f"before it finds it good enough {needed(judge)}"
    yield from doubts(spec, desired)


def doubts(spec: CanarySpec, desired: int) -> Iterator[str]:
    """A sentence for each way in which requests are not shared out one by one: by caller, and by replica."""
    if spec.judge is None or not desired:
        return
    chance = spec.judge.chance_of_false_abort
    if spec.sticky:
        unjudged = [name for name in ("refused", "redirected") if getattr(spec.judge, name) is None]
        but = f"; {' and '.join(unjudged)} not judged, for one caller could decide" if unjudged else ""
        yield (
            f"its callers are sticky: where failures follow the caller, as of one that leaves each time, a canary that "
            f"is no worse is aborted more often than {chance}{but}"
        )
    first = len(spec.stages) - len(spec.steps) + 1
    if size_at(spec, surge_budget(desired, spec.max_surge, spec.max_unavailable), first) == 1:
        yield (
            f"its canary has one replica at {percent(spec.stages[first - 1][0])}: what befalls that replica alone, "
            f"such as a busy machine, counts as the revision's, and aborts it more often than {chance}"
        )


def still_coming(buckets: Buckets, wanted_size: int, baseline_ready: int, fresh: int) -> str:
    """The count of healthy replicas, of the canary and of its baseline."""
    warming = f", {len(buckets.warming)} not for min_ready_seconds yet" if buckets.warming else ""
    its_baseline = f"; {baseline_ready} of {fresh} of its baseline" if fresh else ""
    return (
        f"{len(buckets.ready)} of {wanted_size} canary replicas healthy{warming}, "
        f"{len(buckets.starting)} starting, {len(buckets.sick)} unhealthy{its_baseline}"
    )


def looking(what: str, over_at: datetime | None, judgement: Judgement, now: datetime) -> str:
    """The state of the canary in words: its share, the remaining time, and whether its judge has given up."""
    remaining = f"for {(over_at - now).total_seconds():.0f} more s" if over_at is not None else ""
    return steps(f"the canary has {what}", remaining, judgement.undecided)


def waits_for_sides(  # noqa: PLR0913
    words: str, buckets: Buckets, sides: tuple[Decision, Decision], wanted_size: int, min_ready: float, now: datetime
) -> Waits:
    """The wait of either side; if both are complete: some of the canary are not warm, or none can be spared."""
    if side_waits := next((side.waits for side in sides if side.waits), None):
        return replace(side_waits, words=words)
    alone = replace(buckets, foreign=())
    return for_replicas(words, alone, Budget(wanted_size, wanted_size, 0), now, min_ready=min_ready)


def for_proxies(weight: int) -> Waits:
    """All proxies that live must know a weight before anything follows of it."""
    return Waits(WaitsFor.PROXIES, f"every live proxy must acknowledge {percent(weight)} for the canary")


def for_a_look(
    words: str, over_at: datetime | None, judgement: Judgement, times: Sequence[datetime | None], now: datetime
) -> Waits:
    """Wait for a person if nothing else ends the step, and for the judge as soon as it may decide.

    It looks each second, and finds the same if nobody answers. `times`: when something else may change.
    """
    evidence = tuple(filter(None, (judgement.sentence, judgement.missing)))
    if over_at is None and not judgement.decides:
        return Waits(WaitsFor.PERSON, words, evidence=evidence)
    kind = WaitsFor.JUDGE if judgement.decides and judgement.decides[0] <= now else WaitsFor.TIME
    return Waits(kind, words, until=soonest((*judgement.decides, *times), now), evidence=evidence)


def soonest(times: Iterable[datetime | None], now: datetime) -> datetime | None:
    """The first that is still to come."""
    return min((at for at in times if at is not None and at > now), default=None)
