"""How many routes there are in which state, counted where they are stored: what a glance goes by."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RouteCounts:
    """Live routes of a rollout's new revision, counted where they are stored. `idle`: whatever is out of traffic."""

    starting: int
    healthy: int
    idle: int
