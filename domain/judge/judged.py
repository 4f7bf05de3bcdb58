"""Judges a canary: harm, good enough or undecided, with the numbers that say so.

harm shown, over all its weights                   -> abort
good enough in each measure, at this weight, and
at_least is met                                    -> go on
at_most is over                                    -> undecided for good: hold, promote or abort
otherwise                                          -> undecided yet
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from domain.judge.hanging import never_answered, within_ms
from domain.judge.settings import Judge, Slow, part
from domain.judge.sums import at_no_weight
from domain.model.canary import BothSides, Compared, Exposure, Sums, Waiting
from domain.words.numbers import duration

_NEVER_ANSWERED = 0.1
"""The part of the chance of a false abort by errors that is for requests which nobody answers: these are many soon."""


class Found(StrEnum):
    """The finding of a judge."""

    HARM = "harm"
    GOOD = "good"
    UNDECIDED = "undecided"
    GIVEN_UP = "given up"


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding, and the sentence with the numbers."""

    found: Found
    sentence: str


class MeasureFound(NamedTuple):
    """The stand of one measure, over all weights and at this one, in words, and its log e-values for harm and good.

    `name`: as its settings are called. `is_nothing`: neither side has any of it here. Answers that are slow or failed,
    and those that do not come, share a chance.
    """

    name: str
    said: str
    harm: float
    said_here: str
    good: float
    is_nothing: bool


class Limits(NamedTuple):
    """The bounds that log e-values of harm and good must reach; the chances are shared among all that may abort."""

    harm: float
    good: float


def limits_of(settings: Judge, *, had_copies: bool) -> Limits:
    """The limits of a judge; `had_copies`: those were judged before, and take a part of the chance of a false abort."""
    copied = settings.errors if had_copies else None
    judged = [settings.errors, settings.refused, settings.redirected, settings.slow, copied]
    tests = sum(its is not None for its in judged)
    return Limits(
        math.log(tests / part(settings.chance_of_false_abort)), -math.log(part(settings.chance_of_false_promotion))
    )


def measures(settings: Judge, sums: Sums) -> Iterator[MeasureFound]:
    """Each measure of a judge, in the order in which harm is looked for."""
    control = "baseline" if settings.baseline == "fresh" else "control"
    if settings.errors is not None:
        failed = _measure("errors", "failed", control, sums.failed)
        yield _or_waits(failed, sums.unanswered, never_answered(settings.errors), control, _NEVER_ANSWERED)
    if settings.refused is not None:
        yield _measure("refused", "were refused", control, sums.refused)
    if settings.redirected is not None:
        yield _measure("redirected", "were redirected", control, sums.redirected)
    if settings.slow is not None:
        yield _or_waits(_measure("slow", "were slow", control, sums.slow), sums.waiting, settings.slow, control, 0.5)


def _or_waits(measure: MeasureFound, waits: Waiting, slow: Slow, control: str, chance: float) -> MeasureFound:
    """Give those that wait this part of the measure's chance of a false abort, and let what has come further count."""
    shown, waiting = measure.harm + math.log(1 - chance), waits.highest + math.log(chance)
    if shown >= waiting:
        return measure._replace(harm=shown)
    waited = f"canary at least {waits.canary:,} waited for longer than {within_ms(waits, slow):,} ms"
    return measure._replace(said=f"{waited}, {control} at most {waits.control:,}", harm=waiting)


def judge(settings: Judge, sums: Sums, since: datetime, now: datetime, *, had_copies: bool = False) -> Judged:
    """Judge all evidence of a canary whose present weight every live proxy has known `since`.

    `had_copies`: they were judged before.
    """
    here = sums if sums.since == since else at_no_weight(sums, since)
    found, limits = list(measures(settings, here)), limits_of(settings, had_copies=had_copies)
    for its in found:
        if its.harm >= limits.harm:
            return Judged(Found.HARM, f"{its.said}; {_chance('no worse', its.harm)}")
    sentences = [
        f"{its.said_here}; {_chance('worse than allowed', its.good)}" if its.good >= limits.good else its.said_here
        for its in found
        if its is found[0] or not its.is_nothing or found[0].good >= limits.good > its.good
    ]
    said = "; ".join([*sentences, *_under_way(here.exposure, now)])
    sentence, enough = _with_proxies(said, here), _enough(settings, here, since, now)
    if all(its.good >= limits.good for its in found) and not enough:
        return Judged(Found.GOOD, sentence)
    if now >= over_at(settings, since):
        return Judged(Found.GIVEN_UP, sentence)
    return Judged(Found.UNDECIDED, f"{sentence}; {enough}" if enough else sentence)


def judge_copies(settings: Judge | None, sums: Sums, since: datetime) -> Judged:
    """Judge copies, of requests that only read, of which every live proxy has known `since`.

    Nobody counts which failures of the old revision were of such requests. All of them are taken for that, which speaks
    for the canary. A copy fails when its original does, more often than by chance: that speaks for it too, so the
    chance of a false abort holds.
    """
    here = sums if sums.since == since else at_no_weight(sums, since)
    said = _with_proxies(f"{here.copies.failed:,} of {here.copies.done:,} answered copies failed", here)
    if settings is None or here.copied.highest < limits_of(settings, had_copies=True).harm:
        return Judged(Found.UNDECIDED, said)
    old, chance = f"{here.old_failed:,} of all requests", _chance("no worse", here.copied.highest)
    return Judged(Found.HARM, f"{said}, and {old}; {chance}")


def over_at(settings: Judge, since: datetime) -> datetime:
    """Return when the judge gives up, at a weight that every live proxy has known `since`."""
    return since + timedelta(seconds=settings.at_most.seconds)


def _enough(settings: Judge, here: Sums, since: datetime, now: datetime) -> str:
    """Say what is missing of at_least; empty for nothing."""
    seconds, least = (now - since).total_seconds(), settings.at_least
    if here.requests < least.requests:
        return f"{here.requests:,} of at least {least.requests:,} requests"
    return f"{seconds:.0f} of at least {least.seconds:g} s" if seconds < least.seconds else ""


def _under_way(exposure: Exposure, now: datetime) -> Iterator[str]:
    """Say that more is under way to the canary than its share, where it is."""
    if exposure.surplus and exposure.surplus_since is not None:
        canary, since = exposure.under_way[0], duration(now - exposure.surplus_since)
        yield (
            f"{canary:,} under way to the canary, for {since} more than is surely its share: "
            f"{math.ceil(exposure.surplus):,} count as failed until they end"
        )


def _measure(name: str, verb: str, control: str, compared: Compared) -> MeasureFound:
    said, said_here = (_said(tally, verb, control) for tally in (compared.total, compared.here))
    is_nothing = not compared.here.canary_failed and not compared.here.control_failed
    return MeasureFound(name, said, compared.harm.highest, said_here, compared.good.highest, is_nothing)


def _said(tally: BothSides, verb: str, control: str) -> str:
    """Canary 9 of 412 failed, control 11 of 7,830: 15.5 times as often."""
    canary, failed, others = tally.canary, tally.canary_failed, tally.control_failed
    said = f"canary {failed:,} of {canary:,} {verb}, {control} {others:,} of {tally.control:,}"
    if not all((failed, others, canary, tally.control)):
        return said
    ratio = f"{failed / canary / (others / tally.control):.2g}"
    return f"{said}: as often" if ratio == "1" else f"{said}: {ratio} times as often"


def _chance(null: str, shown: float) -> str:
    """By Ville's inequality: the chance that an e-value ever comes this far."""
    rounded = math.floor(math.exp(min(shown, 13.8)))
    one_in = f"{10 ** (len(str(rounded)) - 1) * int(str(rounded)[0]):,}"
    return f"if it were {null}, the chance of seeing this would be below 1 in {one_in}"


def _with_proxies(sentence: str, here: Sums) -> str:
    if not here.looks:
        return "no proxy has told yet what it answered"
    if here.reporting == here.live > 0:
        return sentence
    if not here.reporting:
        return "no live proxy tells what it answers, so that nothing can be judged"
    return f"{sentence}; {here.reporting} of {here.live} proxies report"
