"""The receipt of a rollout: its promises, measurements, acts and reasons; sealed by a hash.

    receipt 1 ──sha256──▶ receipt 2 ──sha256──▶ receipt 3        of one deployment, in the order in which rollouts ended

A change of one receipt, or its removal from the middle, breaks the hash of the next one.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from hashlib import sha256
from itertools import accumulate
from typing import Any
from uuid import UUID

from domain.model.answer_counts import FIRST_BYTE_MS, Answers, Interval
from domain.planning.recorded_rollout import RecordedAct, RecordedStep, extremes, replayed, waits, waves

NOT_MEASURED = "not measured: no proxy told what it has answered"


def request_summary(intervals: Sequence[Interval], names: Mapping[UUID, str]) -> dict[str, Any]:
    """The sums of a rollout's intervals as plain JSON values, with one sentence of it; `names`: of its revisions.

    `said` alone where nothing was measured.
    """
    if not any(interval.reporting for interval in intervals):
        return {"said": NOT_MEASURED}
    sums = {
        name: sum((interval.of.get(revision, Answers()) for interval in intervals), Answers())
        for revision, name in names.items()
    }
    summary = {
        "by_revision": {name: _document(answers) for name, answers in sums.items()},
        "refused": sum(interval.refused for interval in intervals),
        "seconds": round(sum(interval.seconds for interval in intervals), 3),
        "fewest_reporting": min(interval.reporting for interval in intervals),
        "most_live": max(interval.live for interval in intervals),
    }
    return {**summary, "said": _sentence(sums, summary)}


def within_ms(first_byte: Sequence[int], share: float) -> int | None:
    """The upper edge of the bucket in which this share of the answers had begun; None: beyond all, or none began."""
    total = sum(first_byte)
    edges = (edge for edge, sum_ in zip(FIRST_BYTE_MS, accumulate(first_byte)) if sum_ >= share * total)  # noqa: B905
    return next(edges, None) if total else None


def _document(answers: Answers) -> dict[str, Any]:
    return {
        "done": answers.done,
        "failed": answers.failed,
        "cut": answers.cut,
        "sent": max(answers.begun, answers.done),
        "mended": answers.mended,
        "first_byte_within_ms": {f"p{share:g}": within_ms(answers.first_byte, share / 100) for share in (50, 95, 99)},
    }


def _sentence(sums: Mapping[str, Answers], summary: Mapping[str, Any]) -> str:
    parts = [f"{name}: {_in_words(answers)}" for name, answers in sums.items()]
    if summary["refused"]:
        parts.append(f"{summary['refused']:,} refused without a replica")
    return "; ".join((*parts, *_who_told(summary["fewest_reporting"], summary["most_live"])))


def _in_words(answers: Answers) -> str:
    if not answers.done and not answers.begun:
        return "no requests recorded"
    cut = f", {answers.cut:,} of them cut" if answers.cut else ""
    mended = f", {answers.mended:,} answered by another replica than the first" if answers.mended > 0 else ""
    under_way = answers.begun - answers.done
    waits = f", {under_way:,} not answered when it ended" if under_way > 0 else ""
    within = within_ms(answers.first_byte, 0.95)
    fast = f", p95 to first byte {within} ms" if within else ""
    return f"{answers.failed:,} of {max(answers.done, answers.begun):,} failed{cut}{mended}{waits}{fast}"


def _who_told(reporting: int, live: int) -> Iterable[str]:
    if reporting < live:
        yield f"only {reporting} of {live} proxies told at the worst time"


FORM = 1
"""The form of the document: it counts up when a field changes its meaning."""


@dataclass(frozen=True, slots=True)
class RecordedRollout:
    """A rollout as it is stored, with its steps and the requests meanwhile. `outcome` None: under way.

    `requests`: what proxies told, as `answered` gives it.
    """

    id: str
    deployment: str
    from_revision: str
    to_revision: str
    policy: dict[str, Any]
    ceiling: int
    floor: int
    count_stopping: bool
    actor: str
    reason: str
    started_at: datetime
    ended_at: datetime | None
    outcome: str | None
    back_reason: str | None
    failed_routes: int
    steps: Sequence[RecordedStep]
    acts: Sequence[RecordedAct]
    requests: Mapping[str, Any] = field(default_factory=lambda: request_summary((), {}))


@dataclass(frozen=True, slots=True)
class Sealed:
    """A stored receipt: `text` is hashed, with the hash of the receipt before in it."""

    number: int
    text: str
    sha256: str

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.text)
        return document

    @property
    def is_intact(self) -> bool:
        """Whether the text is still the one that was sealed."""
        return digest(self.text) == self.sha256


@dataclass(frozen=True, slots=True)
class Seal:
    """A receipt's place in its chain. `is_joined`: whether the one before is unchanged; None: it is not there."""

    number: int
    sha256: str
    previous_sha256: str | None
    is_intact: bool
    is_joined: bool | None


def receipt(rollout: RecordedRollout) -> dict[str, Any]:
    """All that is on record of it, as plain JSON values; the same rows give the same receipt."""
    extreme_counts = extremes(rollout.steps)
    took = None if rollout.ended_at is None else (rollout.ended_at - rollout.started_at).total_seconds()
    return {
        "form": FORM,
        "rollout": rollout.id,
        "deployment": rollout.deployment,
        "from": rollout.from_revision,
        "to": rollout.to_revision,
        "policy": rollout.policy,
        "actor": rollout.actor,
        "reason": rollout.reason,
        "started_at": rollout.started_at.isoformat(),
        "ended_at": None if rollout.ended_at is None else rollout.ended_at.isoformat(),
        "seconds": None if took is None else round(took, 3),
        "outcome": rollout.outcome,
        "back_reason": rollout.back_reason,
        "promised": {
            "most_live": rollout.ceiling,
            "fewest_serving": rollout.floor,
            "counts_stopping": rollout.count_stopping,
        },
        "measured": None if extreme_counts is None else asdict(extreme_counts),
        "failed_replicas": rollout.failed_routes,
        "requests": dict(rollout.requests),
        "waves": waves(rollout.steps, rollout.ended_at),
        "waits": list(waits(rollout.steps, rollout.acts)),
        "acts": [
            {"at": act.at.isoformat(), "actor": act.actor, "what": act.what, "said": act.said} for act in rollout.acts
        ],
        "replayed": replayed(rollout.steps),
    }


def seal_receipt(document: dict[str, Any], before: Sealed | None) -> Sealed:
    """The receipt as the next one of its deployment, with the hash of the one before in it; None: it is the first."""
    number = 1 if before is None else before.number + 1
    whole = {**document, "number": number, "previous_sha256": None if before is None else before.sha256}
    text = canonical(whole)
    return Sealed(number, text, digest(text))


def canonical(document: dict[str, Any]) -> str:
    """The only text of a document: keys in order, no blanks."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(text: str) -> str:
    """SHA-256, as 64 hexadecimal digits."""
    return sha256(text.encode()).hexdigest()


def broken(current: Sealed, before: Sealed | None, *, is_oldest: bool) -> str | None:
    """The fault of a receipt in its chain; None: it has none. `is_oldest`: no older receipt is kept."""
    if not current.is_intact:
        return f"receipt {current.number} was changed after it was sealed"
    if before is None:
        return None if is_oldest else f"receipt {current.number - 1} is gone, and receipt {current.number} is not"
    if check_seal(current, before).is_joined is False:
        return f"receipt {before.number} is not the one that was there when receipt {current.number} was sealed"
    return None


def check_seal(current: Sealed, before: Sealed | None) -> Seal:
    """Whether the receipt, and the one before it, are unchanged since they were sealed."""
    previous = current.document["previous_sha256"]
    joined = None if before is None else digest(before.text) == previous
    return Seal(current.number, current.sha256, previous, current.is_intact, joined)
