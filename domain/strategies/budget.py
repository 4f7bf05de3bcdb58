"""A budget says how far a deployment may go above and below its desired count, in integer arithmetic.

n = desired, s = max_surge, u = max_unavailable; each a number or a percent of n.

    n=4  s=25%  u=25%   ceiling 5, keep 3
    n=10 s=25%  u=25%   ceiling 13 (s rounds up), keep 8 (u rounds down)
    n=1  s=0%   u=25%   both are 0, so u = 1: ceiling 1, keep 0
    n=2  s=1    u=2     ceiling 3, keep 1: the last one serves until another does, wherever there is room for that
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

from pydantic import BeforeValidator, Field

_HIGHEST_PERCENT = 1000
_HIGHEST_NUMBER = 10_000
_PERCENT = re.compile(r"[0-9]{1,4}%")


def _check_amount(value: object) -> object:
    match value:
        case bool():
            pass
        case int() if 0 <= value <= _HIGHEST_NUMBER:
            return value
        case str() if _PERCENT.fullmatch(value) and int(value[:-1]) <= _HIGHEST_PERCENT:
            return value
    raise ValueError(
        f"must be a whole number of replicas from 0 to {_HIGHEST_NUMBER}, "
        f'or a whole percent from "0%" to "{_HIGHEST_PERCENT}%"'
    )


Amount = Annotated[
    int | str,
    BeforeValidator(_check_amount),
    Field(description=f'0 to {_HIGHEST_NUMBER:,}, or "0%" to "{_HIGHEST_PERCENT:,}%"'),
]


@dataclass(frozen=True, slots=True)
class Budget:
    """Creations never bring live routes above `ceiling`; drains never leave fewer than `keep` serving.

    `count_stopping`: replicas that are stopping count like live ones, so live + stopping stay at or below `ceiling`.
    `alone`: no replica starts before all replicas of other revisions have stopped.
    """

    desired: int
    ceiling: int
    keep: int
    count_stopping: bool = False
    alone: bool = False


def is_zero(amount: int | str | None) -> bool:
    """Whether the setting is 0 or 0 %."""
    return amount == 0 or (isinstance(amount, str) and int(amount[:-1]) == 0)


def rounded_up(amount: int | str, desired: int) -> int:
    """Resolve `amount` for `desired` replicas; a percent rounds up. 29 % of 100 is 29, 7 % of 100 is 7."""
    return amount if isinstance(amount, int) else -(-int(amount[:-1]) * desired // 100)


def rounded_down(amount: int | str, desired: int) -> int:
    """Resolve `amount` for `desired` replicas; a percent rounds down."""
    return amount if isinstance(amount, int) else int(amount[:-1]) * desired // 100


@lru_cache(maxsize=1024)  # the deployments of a fleet share a few
def surge_budget(desired: int, max_surge: int | str, max_unavailable: int | str) -> Budget:
    """Ceiling n + s, keep n - u, but at least 1, except for one replica without surge.

    If s and u round to 0, u is 1.
    """
    surge = rounded_up(max_surge, desired)
    unavailable = rounded_down(max_unavailable, desired)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    least = min(desired, 1) if surge or desired > 1 else 0
    return Budget(desired, desired + surge, max(desired - unavailable, least))


@lru_cache(maxsize=1024)
def resting_budget(desired: int, *, count_stopping: bool = False, may_surge: bool = True) -> Budget:
    """Outside a rollout the ceiling is n + 1, n without surge, and keep is n."""
    return Budget(desired, desired + may_surge, desired, count_stopping)
