"""The budgets as docs/policies.md promises them, in fractions. It shares nothing with the strategies that keep them.

when                               ceiling    floor
rolling update, canary             n + s      n - u; where percents make both 0, u is 1; 1 at least where s or n - 1 is
blue-green until the promotion     b + n      b
blue-green, the promotion itself              n
recreate                           n          0; old and new never at the same time
the way back                       as above with n = b, which is the size that is wanted then
held or paused, before its first   as above with n = b, but for blue-green
step
outside a rollout                  n + 1      n
there, without surge               n          n; n - 1 while a replica is misplaced
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from domain.model.deployment import Deployment
from domain.model.states import ROLLING_BACK
from domain.strategies.in_place import free_devices

WHOLE = 10_000
"""A weight is so many of all requests."""


@dataclass(frozen=True, slots=True)
class Promised:
    """`desired`: n. `keep`: the floor; `promotion_keeps`: that of a promotion, which brings in what takes its place."""

    desired: int
    ceiling: int
    keep: int
    promotion_keeps: int
    count_stopping: bool = False
    alone: bool = False

    def keep_after(self, *, promotion: bool) -> int:
        """How many serve at least after such a step."""
        return self.promotion_keeps if promotion else self.keep


def promised(deployment: Deployment) -> Promised:
    """What holds now."""
    rollout, n = deployment.rollout, deployment.desired_replicas
    if rollout is None:
        others = any(route.revision_id != deployment.current_revision_id for route in deployment.active_routes)
        has_room = deployment.may_surge or others
        least = n if has_room or not any(route.is_misplaced for route in deployment.active_routes) else max(0, n - 1)
        return Promised(n, n + has_room, least, least, deployment.count_stopping)
    before = rollout.desired_at_start
    spec = rollout.policy.spec.model_dump()
    counts = spec["count_stopping"]
    if deployment.stands_still and not rollout.steps and rollout.policy.strategy != "blue_green":
        n = before
    match rollout.policy.strategy:
        case "blue_green":
            return Promised(n, before + n, before, n, counts)
        case "recreate":
            return Promised(n, n, 0, 0, count_stopping=True, alone=True)
        case "rolling_update" | "canary":
            surge, unavailable = ceil(_of(spec["max_surge"], n)), floor(_of(spec["max_unavailable"], n))
            last_stays = n > 1 or (n == 1 and surge > 0 and not _is_crowded(deployment, n))
            least = max(int(last_stays), n - (unavailable or (surge == 0)))
            if _is_crowded(deployment, n) and deployment.status == ROLLING_BACK:
                least = min(least, n - 1)
            return Promised(n, n + surge, least, least, counts)
    raise AssertionError(f"docs/policies.md has no budget of {rollout.policy.strategy}")


def _is_crowded(deployment: Deployment, n: int) -> bool:
    """Whether there are devices for no more than n replicas, with those that replicas hold."""
    free = free_devices(deployment)
    return free is not None and sum(not route.has_lent for route in deployment.routes) + free <= n


def _of(amount: int | str, n: int) -> Fraction:
    return Fraction(amount) if isinstance(amount, int) else Fraction(amount.removesuffix("%")) / 100 * n


def share(deployment: Deployment) -> Fraction | None:
    """Which part of all requests the canary gets; None where no weight says so."""
    canary = deployment.rollout.canary if deployment.rollout else None
    return None if canary is None or canary.weight is None else Fraction(canary.weight, WHOLE)
