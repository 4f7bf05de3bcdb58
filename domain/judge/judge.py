"""Judges a canary: harm, good enough or undecided, with the numbers that say so.

harm shown, over all its weights                   -> abort
good enough in each measure, at this weight, and
at_least is met                                    -> continue
at_most is over                                    -> undecided for good: hold, promote or abort
otherwise                                          -> undecided yet
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from domain.judge.evalues import Counts, good_enough
from domain.judge.evidence import LEAST_FOR_A_PERCENTILE, at_no_weight, fold_interval, never_answered, within_ms
from domain.judge.judge_spec import Errors, Judge, Redirected, Refused, Slow, part, times
from domain.model.canary import BothSides, CanaryState, Compared, Evidence, Exposure, Sums, Waiting
from domain.text.numbers import duration


@dataclass(frozen=True, slots=True)
class Judging:
    """`settings`: of its judge; None where only the failed answers to copies are counted.

    `copied`: the part of 10,000 reading requests that is copied before its first weight.
    """

    settings: Judge | None
    copied: int = 0

    @property
    def has_baseline(self) -> bool:
        """Whether the new side is compared with fresh replicas of the old revision."""
        return self.settings is not None and self.settings.baseline == "fresh"

    def is_on(self, canary: CanaryState | None) -> bool:
        """Whether answers are looked at now: at a weight by a judge, and before the first one those to copies."""
        if canary is None or canary.weight is None:
            return False
        return self.settings is not None if canary.weight else bool(canary.stage and self.copied)

    def fold_interval(self, canary: CanaryState, evidence: Evidence) -> Sums:
        """Add one interval to the evidence about the canary."""
        copied = 0 if canary.weight else self.copied
        return fold_interval(canary.evidence, evidence, self.settings, canary.weight_known_at, copied)


_Rules = Errors | Refused | Redirected | Slow


def needed(settings: Judge) -> str:
    """The number of answers that it needs, in words, and its limit for slow answers."""
    measures = (settings.errors, settings.refused, settings.redirected, settings.slow)
    requests = max(settings.at_least.requests, *_each(settings, *measures))
    sentence = f"it needs {requests:,} answers of the canary at each weight, if none fails on either side"
    if settings.slow is None:
        return sentence
    (slow,), its = _each(settings, settings.slow), settings.slow
    return (
        f"{sentence}; {slow:,} that are not slow, which is later by {its.by_at_least} than {its.of} of the control, "
        f"known from {LEAST_FOR_A_PERCENTILE} of its answers on"
    )


def still_needed(settings: Judge, sums: Sums, since: datetime, now: datetime) -> str:
    """The number of further answers that find it good, if all are well, and their time at this rate; empty for none.

    What is under way beyond its share is taken to stay so.

    about 240 more successful responses needed (4 min at this rate)
    """
    limit = limits_of(settings, had_copies=False).good
    more = max(
        (
            _more(its, rules, limit, sums.exposure.surplus)
            for its, rules in (
                (sums.failed, settings.errors),
                (sums.refused, settings.refused),
                (sums.redirected, settings.redirected),
                (sums.slow, settings.slow),
            )
            if rules is not None and its.good.highest < limit
        ),
        default=0,
    )
    if not more or sums.since != since:
        return ""
    sentence = f"about {more:,} more successful responses needed"
    seconds = (now - since).total_seconds()
    if not sums.requests or not seconds:
        return sentence
    return f"{sentence} ({duration(more / sums.requests * (now - since))} at this rate)"


def _more(its: Compared, rules: _Rules, limit: float, surplus: float = 0.0) -> int:
    def is_good(clean: int) -> bool:
        here = replace(its.here, canary=its.here.canary + clean, answered=its.here.answered + clean)
        counts = Counts(clean, 0, its.here.control, 0, waiting=surplus)
        evalue = good_enough(its.good, counts, here, times(rules.worse_than), part(rules.allowed))
        return evalue.highest >= limit

    return _fewest(is_good)


def _each(settings: Judge, *measures: _Rules | None) -> Iterator[int]:
    limit = limits_of(settings, had_copies=False).good
    for measure in measures:
        if measure is not None:
            yield _more(Compared(), measure, limit)


def _fewest(is_good: Callable[[int], bool]) -> int:
    """The fewest answers, all of them clean, by which it is found good; more of them never speak against it."""
    few, many = 0, 1
    while not is_good(many):
        few, many = many, 2 * many
    while many - few > 1:
        half = (few + many) // 2
        few, many = (few, half) if is_good(half) else (half, many)
    return many


DENSE = 100
"""A point is due once a hundredth of the time since the first has passed: some hundreds are kept of a whole day."""


@dataclass(frozen=True, slots=True)
class Point:
    """The requests and failures of both sides until then, and the log e-values, at this weight.

    `harm`: of the measure that had come furthest, over all weights. `good`: of the one that lagged most, at this one.
    """

    at: datetime
    weight: int
    canary: int
    canary_failed: int
    control: int
    control_failed: int
    harm: float
    good: float


def point_of(settings: Judge, sums: Sums, at: datetime, weight: int) -> Point:
    """The point that these sums come to. Failures are counted where errors are judged."""
    requests, results = sums.failed.total, list(measures(settings, sums))
    counts = (requests.canary, requests.canary_failed, requests.control, requests.control_failed)
    return Point(at, weight, *counts, max(its.harm for its in results), min(its.good for its in results))


def is_due(first: datetime | None, last: datetime | None, at: datetime) -> bool:
    """Whether a point of this time is kept, after those."""
    return first is None or last is None or at - last >= (at - first) / DENSE


NOTHING_TOLD = "no proxy has told yet what it answered"
_NEVER_ANSWERED = 0.1
"""The part of the chance of a false abort by errors that unanswered requests get: these become many soon."""


class Found(StrEnum):
    """The finding of a judge."""

    HARM = "harm"
    GOOD = "good"
    UNDECIDED = "undecided"
    GIVEN_UP = "given up"


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding, the sentence with the numbers, and what is missing of `at_least`; empty: nothing is."""

    finding: Found
    sentence: str
    missing: str = ""


class MeasureFound(NamedTuple):
    """The state of one measure, over all weights and at this one, in words, and its log e-values for harm and good.

    `name`: as people call it, and `null`: its null hypothesis, in words. Answers that are slow or failed, and those
    that do not come, share a chance.
    """

    name: str
    null: str
    sentence: str
    harm: float
    said_here: str
    good: float


class Limits(NamedTuple):
    """The bounds that log e-values of harm and good must reach; the chances are shared among all that may abort."""

    harm: float
    good: float


def limits_of(settings: Judge, *, had_copies: bool) -> Limits:
    """The limits of a judge; `had_copies`: those were judged before, and take a part of the chance of a false abort."""
    copied = settings.errors if had_copies else None
    allowances = [settings.errors, settings.refused, settings.redirected, settings.slow, copied]
    tests = sum(its is not None for its in allowances)
    return Limits(
        math.log(tests / part(settings.chance_of_false_abort)), -math.log(part(settings.chance_of_false_promotion))
    )


def measures(settings: Judge, sums: Sums) -> Iterator[MeasureFound]:
    """Each measure of a judge, in the order in which harm is looked for."""
    control = "baseline" if settings.baseline == "fresh" else "control"
    if settings.errors is not None:
        failed = _measure("failures", "it failed", control, sums.failed)
        yield _or_waits(failed, sums.unanswered, never_answered(settings.errors), control, _NEVER_ANSWERED)
    if settings.refused is not None:
        yield _measure("refusals", "it refused", control, sums.refused, counts_failures=True)
    if settings.redirected is not None:
        yield _measure("redirections", "it redirected", control, sums.redirected)
    if settings.slow is not None:
        slow = _measure("slow answers", "it was slow", control, sums.slow)
        yield _or_waits(slow, sums.waiting, settings.slow, control, 0.5)


def _or_waits(measure: MeasureFound, waits: Waiting, slow: Slow, control: str, chance: float) -> MeasureFound:
    """Give pending requests this part of the measure's chance of a false abort; the stronger evidence counts."""
    harm, waiting = measure.harm + math.log(1 - chance), waits.highest + math.log(chance)
    if harm >= waiting:
        return measure._replace(harm=harm)
    waited = f"canary at least {waits.canary:,} waited for longer than {within_ms(waits, slow):,} ms"
    return measure._replace(sentence=f"{waited}, {control} at most {waits.control:,}", harm=waiting)


def judge(settings: Judge, sums: Sums, since: datetime, now: datetime, *, had_copies: bool = False) -> Judged:
    """Judge all evidence of a canary whose present weight every live proxy has known `since`.

    `had_copies`: they were judged before.
    """
    here = sums if sums.since == since else at_no_weight(sums, since)
    results, limits = list(measures(settings, here)), limits_of(settings, had_copies=had_copies)
    for its in results:
        if its.harm >= limits.harm:
            return Judged(Found.HARM, f"{its.name}: {its.sentence}, worse {_chance(its)}")
    words = "; ".join([*_by_measure(results, limits), *_under_way(here.exposure, now)])
    sentence, enough = _with_proxies(words, here), _enough(settings, here, since, now)
    if all(its.good >= limits.good for its in results) and not enough:
        return Judged(Found.GOOD, sentence)
    if now >= over_at(settings, since):
        return Judged(Found.GIVEN_UP, sentence)
    return Judged(Found.UNDECIDED, sentence, enough)


def _by_measure(results: Sequence[MeasureFound], limits: Limits) -> Iterator[str]:
    """The verdict on each measure; of those alike in one: failures, refusals and redirections: none of 412, good."""
    verdicts = [(f"{its.said_here}, {'good' if its.good >= limits.good else 'not decided'}", its) for its in results]
    for verdict, alike in groupby(verdicts, key=itemgetter(0)):
        *most, last = [its.name for _, its in alike]
        yield f"{' and '.join(filter(None, (', '.join(most), last)))}: {verdict}"


def judge_copies(settings: Judge | None, sums: Sums, since: datetime) -> Judged:
    """Judge copies, of requests that only read, of which every live proxy has known `since`.

    Nobody counts which failures of the old revision were of such requests. All of them are taken for that, which speaks
    for the canary. A copy fails when its original does, more often than by chance: that speaks for it too, so the
    chance of a false abort holds.
    """
    here = sums if sums.since == since else at_no_weight(sums, since)
    sentence = _with_proxies(f"{here.copies.failed:,} of {here.copies.done:,} answered copies failed", here)
    if settings is None or here.copied.highest < limits_of(settings, had_copies=True).harm:
        return Judged(Found.UNDECIDED, sentence)
    chance = f"(chance below {_one_in(here.copied.highest)} if copies failed no more often than requests)"
    return Judged(Found.HARM, f"{sentence}, and {here.old_failed:,} of all requests, worse {chance}")


def over_at(settings: Judge, since: datetime) -> datetime:
    """The time at which the judge gives up, for a weight that every live proxy has known `since`."""
    return since + timedelta(seconds=settings.at_most.seconds)


def _enough(settings: Judge, here: Sums, since: datetime, now: datetime) -> str:
    """The part of at_least that is missing, in words; empty if none."""
    seconds, least = (now - since).total_seconds(), settings.at_least
    if here.requests < least.requests:
        return f"{here.requests:,} of at least {least.requests:,} requests"
    return f"{seconds:.0f} of at least {least.seconds:g} s" if seconds < least.seconds else ""


def _under_way(exposure: Exposure, now: datetime) -> Iterator[str]:
    """A sentence if more is pending at the canary than its share."""
    if exposure.surplus and exposure.surplus_since is not None:
        canary, since = exposure.under_way[0], duration(now - exposure.surplus_since)
        yield (
            f"{canary:,} under way to the canary, for {since} more than is surely its share: "
            f"{math.ceil(exposure.surplus):,} count as failed until they end"
        )


def _measure(name: str, verb: str, control: str, compared: Compared, *, counts_failures: bool = False) -> MeasureFound:
    null, other = f"{verb} no more often than allowed", f"{control} refused or failed" if counts_failures else control
    sentence, said_here = (_sentence(tally, other) for tally in (compared.total, compared.here))
    return MeasureFound(name, null, sentence, compared.harm.highest, said_here, compared.good.highest)


def _sentence(tally: BothSides, control: str) -> str:
    """Canary 2.2 % (9 of 412), control 0.14 % (11 of 7,830), 16 times as often."""
    canary, failed, others = tally.canary, tally.canary_failed, tally.control_failed
    if not failed:
        return f"none of {canary:,}"
    sentence = f"canary {_rate(failed, canary)}, {control} {_rate(others, tally.control)}"
    if not all((others, canary, tally.control)):
        return sentence
    ratio = f"{failed / canary / (others / tally.control):.2g}"
    return f"{sentence}, as often" if ratio == "1" else f"{sentence}, {ratio} times as often"


def _rate(part: int, whole: int) -> str:
    """2.5 % (243 of 9,656); nothing is divided by none."""
    if not part:
        return f"none of {whole:,}"
    of = 100 * part / whole
    return f"{of:.{2 if of < 10 else 3}g} % ({part:,} of {whole:,})"  # noqa: PLR2004  (two digits, from 10 on three)


def _chance(its: MeasureFound) -> str:
    """The chance of such numbers of this one measure, while it is as its null has it."""
    return f"(chance below {_one_in(its.harm)} if {its.null})"


def _one_in(evidence: float) -> str:
    """The chance that an e-value ever comes this far, by Ville's inequality."""
    rounded = math.floor(math.exp(min(evidence, 13.8)))
    return f"1 in {10 ** (len(str(rounded)) - 1) * int(str(rounded)[0]):,}"


def _with_proxies(sentence: str, here: Sums) -> str:
    if not here.looks:
        return NOTHING_TOLD
    if here.reporting == here.live > 0:
        return sentence
    if not here.reporting:
        return "no live proxy tells what it answers, so that nothing can be judged"
    return f"{sentence}; {here.reporting} of {here.live} proxies report"
