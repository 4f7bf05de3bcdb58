"""What stands at the beginning: nothing is counted yet, nobody has asked for anything, and no clock has run."""

from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from typing import Any
from uuid import UUID

import pytest

from domain.model.answer_counts import Answers, Copies, Counters, Interval
from domain.model.canary import NOTHING_SEEN, CanaryState, Evidence
from domain.model.decision import Decision, RouteChanges
from domain.model.deployment import Deployment, Rollout, StartFailures
from domain.model.states import Verdict
from tests.support.pictures.pictures import NOW, READY, V1, V2, rolling_update

BEGUN = Rollout(UUID(int=1), V1, V2, rolling_update(), NOW, NOW, NOW, 3)
ALONE = Deployment(UUID(int=1), "web", 3, READY, V1, None, 1, NOW)


def leaves(value: Any) -> Iterator[Any]:
    match value:
        case dict():
            for each in value.values():
                yield from leaves(each)
        case list() | tuple():
            for each in value:
                yield from leaves(each)
        case _:
            yield value


@pytest.mark.parametrize("nothing", [NOTHING_SEEN, Answers(), Copies()])
def test_before_the_first_look_at_a_proxy_nothing_is_counted(nothing: Any) -> None:
    assert {leaf for leaf in leaves(asdict(nothing)) if leaf is not None} == {0}


def test_what_a_proxy_does_not_tell_is_none() -> None:
    counters, interval = Counters(9, {}), Interval(1, NOW, 2.0, {}, 1, 1)
    assert (counters.refused, counters.copies, counters.under_way) == (0, Copies(), {})
    assert (interval.refused, interval.copies, interval.under_way) == (0, Copies(), {})
    evidence = Evidence(NOW, Answers(), Answers(), 1, 1)
    assert (evidence.copies, evidence.old_failed, evidence.youngest_at, evidence.under_way) == (
        Copies(),
        0,
        None,
        (0, 0),
    )


def later_ones(value: Any, after: str) -> dict[str, Any]:
    """The fields behind this one, which a caller may leave out."""
    names = [each.name for each in fields(value)]
    return {name: getattr(value, name) for name in names[names.index(after) + 1 :]}


def test_a_rollout_has_counted_nothing_and_was_asked_for_nothing() -> None:
    assert later_ones(BEGUN, "desired_at_start") == {
        "desired_with_revision": None,
        "failed_routes": 0,
        "steps": 0,
        "clock_stopped_at": None,
        "promote_requested": False,
        "is_undo": False,
        "last_failure": None,
        "in_use": False,
        "unanswered": 0,
        "canary": None,
    }


def test_a_deployment_is_well_and_at_rest() -> None:
    rest = later_ones(ALONE, "phase_started_at")
    assert rest.pop("autoscaling").rules == ()
    assert {name: value for name, value in rest.items() if value is not None and value != ()} == {
        "phase_attempts": 0,
        "count_stopping": False,
        "may_surge": True,
    }
    assert StartFailures(V1, 2, NOW).short_lives == 0


def test_a_canary_begins_without_requests_and_without_evidence() -> None:
    assert CanaryState() == CanaryState(0, 0, None, NOTHING_SEEN)


def test_a_stage_begins_with_the_evidence_so_far_and_a_weight_that_no_proxy_knows() -> None:
    seen = replace(NOTHING_SEEN, requests=40)
    known = CanaryState(1, 500, NOW, seen)
    assert known.at(2, 5000) == CanaryState(2, 5000, None, seen)
    assert known.with_weight(500) == known
    assert known.with_weight(300) == CanaryState(1, 300, None, seen)
    assert (known.is_at(1), known.is_at(2)) == (True, False)


def test_a_decision_changes_nothing_that_it_does_not_say() -> None:
    plain = Decision(Verdict.NEED_RETRY, "as it was decided")
    assert not plain.changes
    assert (plain.recheck_at, plain.clock_stopped, plain.desired_replicas) == (None, False, None)
    assert (plain.waits, plain.harms, RouteChanges.create(V1, 0), RouteChanges().created) == (
        None,
        False,
        RouteChanges(),
        0,
    )
    assert (Decision.give_up("no").harms, Decision.give_up("no", harms=True).harms) == (False, True)
