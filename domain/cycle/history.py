"""The timeline for people: consecutive records that say the same thing become one with a count."""

from dataclasses import dataclass
from uuid import UUID

from domain.cycle.transitions import ClassifiedDecision
from domain.model.states import Verdict


@dataclass(frozen=True, slots=True)
class HistoryKey:
    """Records with equal keys, one after the other, are merged: attempts + 1, first time kept, last message kept.

    A deployment's row remembers the key of its last record as text.
    """

    rollout_id: UUID | None
    phase: str
    result: Verdict
    error_code: str | None
    target: str

    def __str__(self) -> str:
        """Equal for equal keys, and for no others."""
        return f"{self.rollout_id or '-'} {self.phase} {self.result} {self.error_code or '-'} {self.target}"


def history_key(phase: str, classified: ClassifiedDecision) -> HistoryKey:
    """Return what this decision is remembered as."""
    rollout = classified.deployment.rollout
    return HistoryKey(
        rollout_id=rollout.id if rollout else None,
        phase=phase,
        result=classified.verdict,
        error_code=_error_code(classified),
        target=str(classified.to),
    )


def _error_code(classified: ClassifiedDecision) -> str | None:
    """The exception's type for an error, the hardened verdict otherwise."""
    match classified.verdict:
        case Verdict.ERROR:
            return classified.reason.partition(":")[0]
        case Verdict.EXPIRED | Verdict.GIVE_UP:
            return str(classified.verdict)
        case _:
            return None
