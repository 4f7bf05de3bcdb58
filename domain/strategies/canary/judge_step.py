"""Asks a canary's judge at its present step: give up, go on, or look on."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.judge.judge import Found, Judged, judge, judge_copies, over_at, still_needed
from domain.judge.judge_spec import Judge
from domain.model.canary import CanaryState
from domain.strategies.canary.steps import CanarySpec
from domain.text.numbers import duration

EVERY_SECONDS = 1


@dataclass(frozen=True, slots=True)
class Judgement:
    """`next_at`: when to look again. `harms`: it gives up since callers are harmed, and not since nobody can tell.

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
    found = judge_copies(spec.judge, canary.evidence, since)
    if spec.judge is None or not spec.judge.dry_run:
        is_harm = found.found is Found.HARM
        return Judgement(found.sentence, gives_up=is_harm, next_at=next_at, harms=is_harm)
    return _on_a_dry_run(found, next_at)


def _on_a_dry_run(found: Judged, next_at: datetime) -> Judgement:
    return Judgement(f"its judge, on a dry run, finds: {found.found.value}, {found.sentence}", next_at=next_at)


def judgement(canary: CanaryState, spec: CanarySpec, now: datetime) -> Judgement:
    """Return what its judge says of a canary that has a weight, or gets copies.

    copies, and harm                                 -> give up
    copies                                           -> how many failed is said
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
    found = judge(settings, canary.evidence, since, now, had_copies=spec.mirror is not None)
    next_at = now + timedelta(seconds=EVERY_SECONDS)
    if settings.dry_run:
        return _on_a_dry_run(found, next_at)
    then = _then(found, settings)
    sentence = found.sentence
    if found.found is Found.GIVEN_UP:
        sentence = f"undecided after {duration(timedelta(seconds=settings.at_most.seconds))}: {sentence}"
    if found.found is Found.UNDECIDED and (more := still_needed(settings, canary.evidence, since, now)):
        sentence = f"{sentence}; {more}"
    may_at = since + timedelta(seconds=settings.at_least.seconds)
    decides = (may_at, over_at(settings, since)) if then == "look on" else ()
    return Judgement(sentence, then == "abort", then == "promote", decides, next_at, found.found is Found.HARM)


def _then(found: Judged, settings: Judge) -> str:
    match found.found:
        case Found.HARM:
            return "abort"
        case Found.GOOD:
            return "promote"
        case Found.GIVEN_UP:
            return settings.if_undecided
        case Found.UNDECIDED:
            return "look on"
