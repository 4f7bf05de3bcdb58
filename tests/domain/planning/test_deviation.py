"""A rollout held against its plan: what is named, and what is not."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.model.deployment import Deployment
from domain.model.policy import DeploymentPolicy
from domain.planning.plan_input import Subject
from domain.planning.recorded_rollout import RecordedStep, deviations
from domain.planning.replica_timings import Timings
from domain.planning.rollout_plan import Plan, plan
from domain.strategies.builtin import parse_policy
from tests.support.pictures.pictures import NOW, ROLLING_BACK, blue_green, deploying, rolling_update
from tests.support.worlds.recorded import steps_of

LEARNED = Timings(starts=(1.0, 1.0, 2.0), stops=(1.0,))


def planned() -> Plan:
    return plan(Subject(deploying("■■■|")), NOW, LEARNED, lambda: 0.5)


def later(steps: list[RecordedStep], seconds: float) -> list[RecordedStep]:
    """The second wave takes so much longer: all after it comes later."""
    late = timedelta(seconds=seconds)
    return [*steps[:2], *(replace(step, at=step.at + late) for step in steps[2:])]


def test_a_rollout_that_goes_as_planned_has_no_deviation() -> None:
    assert list(deviations(planned(), steps_of(deploying("■■■|")))) == []
    assert list(deviations(planned(), steps_of(deploying("■■■|"))[:2])) == [], "what is still to come is none"


@pytest.mark.parametrize("policy", [rolling_update(), blue_green(auto_promote=True)])
def test_what_is_parked_until_the_new_revision_answers_was_planned_to_be_drained(policy: DeploymentPolicy) -> None:
    asked = plan(Subject(deploying("■■■|", policy=policy)), NOW, LEARNED, lambda: 0.5)
    steps = steps_of(deploying("■■■|", policy=policy, rollout={"in_use": True}))
    assert any(step.changes.park_route_ids for step in steps)
    assert list(deviations(asked, steps)) == []


def test_what_is_parked_as_planned_is_no_deviation() -> None:
    parks = deploying("■■■|", policy=blue_green(auto_promote=True, scale_down_delay_seconds=60))
    asked = plan(Subject(parks), NOW, LEARNED, lambda: 0.5)
    assert any(wave.park for wave in asked.waves)
    assert list(deviations(asked, steps_of(parks))) == []


def test_waves_behind_the_end_of_a_plan_that_is_cut_are_no_deviation() -> None:
    whole = planned()
    assert len(list(deviations(replace(whole, waves=whole.waves[:2]), steps_of(deploying("■■■|"))))) == 2
    assert list(deviations(replace(whole, waves=whole.waves[:2], is_cut=True), steps_of(deploying("■■■|")))) == []


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.5, []), (40, ["wave 2 took 41 s, planned 1.0 s: route {} started slowly"])]
)
def test_a_wave_that_takes_much_longer_is_named_with_the_replica_that_started_slowly(
    seconds: float, said: list[str]
) -> None:
    steps = later(steps_of(deploying("■■■|")), seconds)
    slow = max(steps[2].deployment.routes, key=lambda route: route.created_at).id.hex[-8:]
    assert list(deviations(planned(), steps)) == [each.format(slow) for each in said]


def test_what_took_long_before_may_take_half_as_long_again() -> None:
    slow = plan(Subject(deploying("■■■|")), NOW, Timings(starts=(4.0,), stops=(1.0,)), lambda: 0.5)
    assert list(deviations(slow, later(steps_of(deploying("■■■|")), 5))) == [], "6 s instead of 4 s"
    assert len(list(deviations(slow, later(steps_of(deploying("■■■|")), 5.1)))) == 1


def canary(judge: dict[str, Any] | None) -> Deployment:
    policy = parse_policy({"strategy": "canary", "spec": {"steps": ["50%"], "judge": judge}})
    return deploying("■|", 1, policy=policy, rollout={"weight": 0})


@pytest.mark.parametrize("deployment", [canary(None), canary({}), deploying("■|", 1, policy=blue_green())])
def test_what_waits_for_a_person_or_a_judge_is_not_slow_however_long_they_take(deployment: Deployment) -> None:
    """The steps are those of the plan's own world, after each of which an hour passes."""
    foreseen = plan(Subject(deployment), NOW, LEARNED, lambda: 0.5)
    (asked,) = [wave.number for wave in foreseen.waves if wave.waits_for_person or wave.waits_for_judge]
    step = steps_of(deployment)[0]
    steps = [
        replace(step, number=wave.number, at=NOW + timedelta(hours=wave.number), decision={**step.decision})
        for wave in foreseen.waves[:asked]
    ]
    slow = [said for said in deviations(replace(foreseen, is_certain=False), steps) if " took " in said]
    assert len(slow) == asked - 2, "all before, but not the wait"


def test_what_was_not_planned_is_named() -> None:
    steps = steps_of(deploying("■■■|"))
    more = replace(steps[-1], number=5, decision={**steps[-1].decision, "reason": "creating 1"})
    assert list(deviations(planned(), [*steps, more])) == ["wave 5 was not planned: creating 1"]


@pytest.mark.parametrize("verdict", ["give_up", "expired"])
def test_a_plan_that_was_given_up_is_no_deviation(verdict: str) -> None:
    steps = steps_of(deploying("■■■|"))
    given_up = replace(steps[1], decision={**steps[1].decision, "verdict": verdict})
    assert list(deviations(planned(), [steps[0], given_up, *steps[2:], *steps[2:]])) == []
    back = replace(steps[1], deployment=replace(steps[1].deployment, status=ROLLING_BACK))
    assert list(deviations(planned(), [steps[0], back, *steps[2:], *steps[2:]])) == []


def test_a_wave_that_did_something_else_is_named() -> None:
    steps = steps_of(deploying("■■■|", 3, 2, 1))
    assert next(deviations(planned(), steps)) == "wave 1 did create 2, drain 1, planned create 1, drain 1"
    said = deviations(replace(planned(), is_certain=False), steps)
    assert not [each for each in said if " did " in each], "the plan had said that its waves depend on chance"
