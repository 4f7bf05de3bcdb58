"""Routes where their number is all that is read of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RouteCounts:
    """Live routes of a rollout's new revision, counted where they are stored. `idle`: whatever is out of traffic."""

    starting: int
    healthy: int
    idle: int
