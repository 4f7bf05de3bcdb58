"""Sums up what callers met during a rollout, by revision, as far as proxies told."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any
from uuid import UUID

from domain.model.answer_counts import FIRST_BYTE_MS, Answers, Interval

NOT_MEASURED = "not measured: no proxy told what it has answered"


def answered(intervals: Sequence[Interval], names: Mapping[UUID, str]) -> dict[str, Any]:
    """The sums of a rollout's intervals as plain JSON values, with one sentence of it; `names`: of its revisions.

    `said` alone where nothing was measured.
    """
    if not any(interval.reporting for interval in intervals):
        return {"said": NOT_MEASURED}
    sums = {
        name: sum((interval.of.get(revision, Answers()) for interval in intervals), Answers())
        for revision, name in names.items()
    }
    found = {
        "by_revision": {name: _document(answers) for name, answers in sums.items()},
        "refused": sum(interval.refused for interval in intervals),
        "seconds": round(sum(interval.seconds for interval in intervals), 3),
        "fewest_reporting": min(interval.reporting for interval in intervals),
        "most_live": max(interval.live for interval in intervals),
    }
    return {**found, "said": _said(sums, found)}


def within_ms(first_byte: Sequence[int], share: float) -> int | None:
    """The upper edge of the bucket in which this share of the answers had begun; None: beyond all, or none began."""
    total = sum(first_byte)
    reached = (edge for edge, sum_ in zip(FIRST_BYTE_MS, accumulate(first_byte)) if sum_ >= share * total)  # noqa: B905
    return next(reached, None) if total else None


def _document(answers: Answers) -> dict[str, Any]:
    return {
        "done": answers.done,
        "failed": answers.failed,
        "cut": answers.cut,
        "sent": max(answers.begun, answers.done),
        "mended": answers.mended,
        "first_byte_within_ms": {f"p{share:g}": within_ms(answers.first_byte, share / 100) for share in (50, 95, 99)},
    }


def _said(sums: Mapping[str, Answers], found: Mapping[str, Any]) -> str:
    parts = [f"{name}: {_in_words(answers)}" for name, answers in sums.items()]
    if found["refused"]:
        parts.append(f"{found['refused']:,} refused without a replica")
    return "; ".join((*parts, *_who_told(found["fewest_reporting"], found["most_live"])))


def _in_words(answers: Answers) -> str:
    if not answers.done and not answers.begun:
        return "no answer counted"
    cut = f", {answers.cut:,} of them cut" if answers.cut else ""
    mended = f", {answers.mended:,} answered by another replica than the first" if answers.mended > 0 else ""
    under_way = answers.begun - answers.done
    waits = f", {under_way:,} not answered when it ended" if under_way > 0 else ""
    within = within_ms(answers.first_byte, 0.95)
    fast = f", 95 of 100 began within {within} ms" if within else ""
    return f"{answers.failed:,} of {max(answers.done, answers.begun):,} failed{cut}{mended}{waits}{fast}"


def _who_told(reporting: int, live: int) -> Iterable[str]:
    if reporting < live:
        yield f"only {reporting} of {live} proxies told at the worst time"
