"""Doubts about a judge: where the chances that it promises do not hold, said before it judges."""

from collections.abc import Iterator
from datetime import timedelta

from domain.judge.judge import needed
from domain.strategies.budget import surge_budget
from domain.strategies.canary.steps import CanarySpec, size_at
from domain.text.numbers import duration, percent

_UNDECIDED = {"hold": "waits for a person", "promote": "goes on", "abort": "goes back"}


def cautions(spec: CanarySpec, desired: int) -> Iterator[str]:
    """Yield when its judge decides, and each doubt; nothing without one."""
    judge = spec.judge
    if judge is None:
        return
    soonest, latest = (duration(timedelta(seconds=bound.seconds)) for bound in (judge.at_least, judge.at_most))
    yield (
        f"its judge says when it goes on: at each weight after {soonest} and {judge.at_least.requests:,} requests "
        f"at the soonest; undecided after {latest} it {_UNDECIDED[judge.if_undecided]}"
    )
    yield f"before it finds it good enough {needed(judge)}"
    yield from doubts(spec, desired)


def doubts(spec: CanarySpec, desired: int) -> Iterator[str]:
    """A sentence for each way in which requests are not shared out one by one: by caller, and by replica."""
    if spec.judge is None or not desired:
        return
    chance = spec.judge.chance_of_false_abort
    if spec.sticky:
        unjudged = [name for name in ("refused", "redirected") if getattr(spec.judge, name) is None]
        but = f"; {' and '.join(unjudged)} not judged, for one caller could decide" if unjudged else ""
        yield (
            f"its callers are sticky: where failures follow the caller, as of one that leaves each time, a canary that "
            f"is no worse is aborted more often than {chance}{but}"
        )
    first = len(spec.stages) - len(spec.steps) + 1
    if size_at(spec, surge_budget(desired, spec.max_surge, spec.max_unavailable), first) == 1:
        yield (
            f"its canary has one replica at {percent(spec.stages[first - 1][0])}: what befalls that replica alone, "
            f"such as a busy machine, counts as the revision's, and aborts it more often than {chance}"
        )
