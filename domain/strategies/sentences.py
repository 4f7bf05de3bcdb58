"""Sentences of all strategies: each step with the inequality that allows it, nothing about steps not taken."""

from domain.strategies.buckets import Buckets
from domain.strategies.budget import Budget
from domain.text.numbers import all_of


def steps(*parts: str) -> str:
    """The parts that are not empty, as one sentence."""
    return ", ".join(part for part in parts if part)


def counted(verb: str, count: int, what: str = "") -> str:
    """E.g. "draining 2 green"; empty for none."""
    return f"{verb} {count}{what and ' '}{what}" if count else ""


def complete(count: int) -> str:
    """The new revision has taken over."""
    return f"{all_of(count, 'replica')} {'runs' if count == 1 else 'run'} the new revision"


def creating(count: int, buckets: Buckets, budget: Budget, what: str = "") -> str:
    """E.g. "creating 1 new (2 live + 1 stopping + 1 ≤ 4)"; empty for none."""
    inequality = f" ({buckets.occupied(budget)} + {count} ≤ {budget.ceiling})"
    return counted("creating", count, what) + inequality if count else ""


def draining(count: int, budget: Budget) -> str:
    """E.g. "draining 1 (at least 2 of 3 stay)"; empty for none."""
    return f"draining {count} (at least {budget.keep} of {budget.desired} stay)" if count else ""
