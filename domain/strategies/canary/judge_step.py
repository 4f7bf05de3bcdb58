"""Asks a canary's judge at its present step: give up, continue, or look on."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.judge.judge import Found, Judged, judge, judge_copies, needed, over_at, still_needed
from domain.judge.judge_spec import Judge
from domain.model.canary import CanaryState
from domain.strategies.budget import surge_budget
from domain.strategies.canary.steps import CanarySpec, size_at
from domain.text.numbers import duration, percent

EVERY_SECONDS = 1


@dataclass(frozen=True, slots=True)
class Judgement:
    """`next_at`: the next look. `harms`: it gives up because callers are harmed, not because it is undecided.

    `decides`: from when the judge, and nobody else, may say that the step is over, and when it gives up; else empty.
    """

    sentence: str = ""
    gives_up: bool = False
    is_over: bool = False
    decides: tuple[datetime, ...] = ()
    next_at: datetime | None = None
    harms: bool = False


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
    sentence = verdict.sentence
    if verdict.finding is Found.GIVEN_UP:
        sentence = f"undecided after {duration(timedelta(seconds=settings.at_most.seconds))}: {sentence}"
    if verdict.finding is Found.UNDECIDED and (more := still_needed(settings, canary.evidence, since, now)):
        sentence = f"{sentence}; {more}"
    may_at = since + timedelta(seconds=settings.at_least.seconds)
    decides = (may_at, over_at(settings, since)) if then == "look on" else ()
    return Judgement(sentence, then == "abort", then == "promote", decides, next_at, verdict.finding is Found.HARM)


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


_UNDECIDED = {"hold": "waits for a person", "promote": "goes on", "abort": "goes back"}


def cautions(spec: CanarySpec, desired: int) -> Iterator[str]:
    """Yield when its judge decides, and each doubt; nothing without one."""
    judge = spec.judge
    if judge is None:
        return
    soonest, latest = (duration(timedelta(seconds=bound.seconds)) for bound in (judge.at_least, judge.at_most))
    yield (
        f"its judge says when it goes on: at each weight after {soonest} and {judge.at_least.requests:,} requests "
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
