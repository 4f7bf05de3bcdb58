"""Routes where their number is all that is read of them."""

from typing import NamedTuple

from domain.model.bounds import Limited
from domain.model.policy import DeploymentPolicy


class RouteCounts(NamedTuple):
    """Live routes of a rollout's new revision, counted where they are stored. `idle`: those that get no traffic."""

    starting: int
    healthy: int
    idle: int


class Glimpse(NamedTuple):
    """What a glance sees of a deployment in a rollout: a snapshot, with its routes, is made only for who needs it.

    `stands`: the rollout is paused or held, or its clocks stand still and may go on now.
    """

    rollout: Limited
    policy: DeploymentPolicy
    desired: int
    counts: RouteCounts
    stands: bool
