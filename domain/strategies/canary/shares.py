"""What a share of the requests asks of a budget: replicas for the share, and a share for the replicas."""

from domain.strategies.budget import Budget
from domain.words.numbers import WHOLE

_FINE = 2
"""Weights are whole hundredths of a percent: so much less of one asks for no further replica."""


def needed(budget: Budget, weight: int) -> int:
    """How many serve at least on a side that gets so many of 10,000 requests; keep 10: 10 at 95 %, 1 at 5 %."""
    return min(budget.keep, max(weight > 0, -(-(weight - _FINE) * budget.keep // WHOLE)))


def carried(budget: Budget, replicas: int) -> int:
    """How many of 10,000 requests so many replicas answer at most; keep 3: 3,333 for one."""
    return WHOLE * replicas // budget.keep if replicas < budget.keep else WHOLE
