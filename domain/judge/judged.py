"""What a judge finds of a canary: harm, good enough or undecided, with the numbers that say so.

harm shown, over all its weights                   -> abort
good enough in each measure, at this weight, and
at_least is met                                    -> go on
at_most is over                                    -> undecided for good: hold, promote or abort
otherwise                                          -> undecided yet
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from domain.judge.evalues import Counts, good_enough, harm
from domain.judge.evidence import failures, is_refused_counted, refusals, slow_ones
from domain.judge.hanging import hanging
from domain.judge.settings import Errors, Judge, Refused, Slow, part, times
from domain.model.canary import Evidence
from domain.words.numbers import WHOLE


class Found(StrEnum):
    """What a judge finds."""

    HARM = "harm"
    GOOD = "good"
    UNDECIDED = "undecided"
    GIVEN_UP = "given up"


@dataclass(frozen=True, slots=True)
class Judged:
    """What is found, and the sentence with the numbers."""

    found: Found
    sentence: str


@dataclass(frozen=True, slots=True)
class _Measure:
    control: str
    verb: str
    settings: Errors | Refused | Slow
    count: Callable[[Sequence[Evidence]], list[Counts]]


def judge(
    settings: Judge, evidence: Sequence[Evidence], since: datetime, now: datetime, *, had_copies: bool = False
) -> Judged:
    """What all evidence says of a canary whose present weight every live proxy has known `since`.

    `had_copies`: they were judged before, and take a part of the chance of a false abort.
    """
    measures = _measures(settings, evidence)
    counted = [(measure, measure.count(evidence)) for measure in measures]
    limit = _harm_limit(settings, len(measures), had_copies=had_copies)
    for measure, counts in counted:
        said, shown = _harm(measure, counts, evidence)
        if shown >= limit:
            return Judged(Found.HARM, f"{said}; {_chance('no worse', shown)}")
    here = [seen for seen in evidence if seen.at > since]
    sentences, all_good = [], bool(counted)
    needed = -math.log(part(settings.chance_of_false_promotion))
    for measure, counts in counted:
        counts_here = counts[len(evidence) - len(here) :]
        shown = good_enough(counts_here, times(measure.settings.worse_than), part(measure.settings.allowed))
        is_good = shown >= needed
        all_good = all_good and is_good
        said = _compared(measure, counts_here)
        sentences.append(f"{said}; {_chance('worse than allowed', shown)}" if is_good else said)
    sentence = _with_proxies("; ".join(sentences), here)
    enough = _enough(settings, here, since, now)
    if all_good and not enough:
        return Judged(Found.GOOD, sentence)
    if now >= over_at(settings, since):
        return Judged(Found.GIVEN_UP, sentence)
    return Judged(Found.UNDECIDED, f"{sentence}; {enough}" if enough else sentence)


def judge_copies(settings: Judge | None, evidence: Sequence[Evidence], share: int, since: datetime) -> Judged:
    """What copies say, `share` of 10,000 requests that only read, of which every live proxy has known `since`.

    Nobody counts which failures of the old revision were of such requests. All of them are taken for that, which speaks
    for the canary. A copy fails when its original does, more often than by chance: that speaks for it too, so the
    chance of a false abort holds.
    """
    here = [seen for seen in evidence if seen.at > since]
    done, failed = sum(seen.copies.done for seen in here), sum(seen.copies.failed for seen in here)
    said = _with_proxies(f"{failed:,} of {done:,} copies failed", here)
    if settings is None or settings.errors is None:
        return Judged(Found.UNDECIDED, said)
    counts = [Counts(share, seen.copies.failed, WHOLE, seen.old_failed) for seen in here]
    shown = harm(counts, times(settings.errors.worse_than))
    if shown < _harm_limit(settings, len(_measures(settings, evidence)), had_copies=True):
        return Judged(Found.UNDECIDED, said)
    old = sum(seen.old_failed for seen in here)
    return Judged(Found.HARM, f"{said}, and {old:,} of all requests; {_chance('no worse', shown)}")


def _harm(measure: _Measure, counts: Sequence[Counts], evidence: Sequence[Evidence]) -> tuple[str, float]:
    """What shows most harm, in words, and its log e-value. Slow answers, and those that do not come, share a chance."""
    shown = harm(counts, times(measure.settings.worse_than))
    if not isinstance(measure.settings, Slow):
        return _compared(measure, counts), shown
    hangs = hanging(evidence, measure.settings)
    if shown >= hangs.shown:
        return _compared(measure, counts), shown - math.log(2)
    waits = f"canary at least {hangs.canary:,} waited for longer than {hangs.within_ms:,} ms"
    return f"{waits}, {measure.control} at most {hangs.control:,}", hangs.shown - math.log(2)


def _harm_limit(settings: Judge, measures: int, *, had_copies: bool) -> float:
    """The logarithm of what an e-value must reach: the chance is shared out among all that may abort a canary."""
    tests = max(1, measures) + (had_copies and settings.errors is not None)
    return math.log(tests / part(settings.chance_of_false_abort))


def over_at(settings: Judge, since: datetime) -> datetime:
    """When the judge gives up, at a weight that every live proxy has known `since`."""
    return since + timedelta(seconds=settings.at_most.seconds)


def _measures(settings: Judge, evidence: Sequence[Evidence]) -> list[_Measure]:
    found, control = [], "baseline" if settings.baseline == "fresh" else "control"
    if settings.errors is not None:
        found.append(_Measure(control, "failed", settings.errors, failures))
    if settings.refused is not None and (not evidence or is_refused_counted(evidence)):
        found.append(_Measure(control, "were refused", settings.refused, refusals))
    if (slow := settings.slow) is not None:
        found.append(_Measure(control, "were slow", slow, lambda evidence: slow_ones(evidence, slow)))
    return found


def _enough(settings: Judge, here: Sequence[Evidence], since: datetime, now: datetime) -> str:
    """What is missing of at_least; empty for nothing."""
    seconds, requests = (now - since).total_seconds(), sum(seen.canary.done for seen in here)
    least = settings.at_least
    if requests < least.requests:
        return f"{requests:,} of at least {least.requests:,} requests"
    return f"{seconds:.0f} of at least {least.seconds:g} s" if seconds < least.seconds else ""


def _compared(measure: _Measure, counts: Sequence[Counts]) -> str:
    """Canary 9 of 412 failed, control 11 of 7,830: 15.5 times as often."""
    canary, failed = sum(each.canary for each in counts), sum(each.canary_failed for each in counts)
    control, others = sum(each.control for each in counts), sum(each.control_failed for each in counts)
    said = f"canary {failed:,} of {canary:,} {measure.verb}, {measure.control} {others:,} of {control:,}"
    if not all((failed, others, canary, control)):
        return said
    ratio = f"{failed / canary / (others / control):.2g}"
    return f"{said}: as often" if ratio == "1" else f"{said}: {ratio} times as often"


def _chance(null: str, shown: float) -> str:
    """By Ville's inequality: the chance that an e-value ever comes this far."""
    rounded = math.floor(math.exp(min(shown, 13.8)))
    one_in = f"{10 ** (len(str(rounded)) - 1) * int(str(rounded)[0]):,}"
    return f"if it were {null}, the chance of seeing this would be below 1 in {one_in}"


def _with_proxies(sentence: str, here: Sequence[Evidence]) -> str:
    if not here:
        return "no proxy has told yet what it answered"
    last = here[-1]
    if last.reporting == last.live > 0:
        return sentence
    if not last.reporting:
        return "no live proxy tells what it answers, so that nothing can be judged"
    return f"{sentence}; {last.reporting} of {last.live} proxies report"
