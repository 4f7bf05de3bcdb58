"""Cycles drawn from the steps that Postgres keeps."""

import json

from db.views.planning_views import cycles
from db.views.timeline import StepView
from domain.cycle.recording import decision_json, inputs_json
from domain.handlers.deploying import DeployingProvisioningHandler
from tests.support.pictures.pictures import NOW, deploying


def step(drawn: str) -> StepView:
    (classified,) = DeployingProvisioningHandler().execute([deploying(drawn)], NOW).decisions
    return StepView(
        step_no=1,
        phase="deploying_provisioning",
        at=NOW,
        verdict=str(classified.verdict),
        inputs=json.loads(inputs_json(classified.deployment, NOW)),
        decision=json.loads(decision_json(classified)),
    )


def test_a_step_that_creates_is_followed_by_the_wait_for_what_it_created() -> None:
    drawn = [(cycle.picture, cycle.did, cycle.active, cycle.serving) for cycle in cycles(step("■■|■"))]
    assert drawn == [("■■|■", "create 1, drain 1", 3, 3), ("■|■◇", "wait", 3, 2)]
    assert cycles(step("■■|■"))[1].why == "waiting: 1 new starting; 1 of 3 ready", "as the strategy says it"


def test_the_last_step_says_that_the_rollout_is_completed() -> None:
    assert [(cycle.picture, cycle.did) for cycle in cycles(step("|■■■"))] == [("|■■■", "completed, swap, ready")]
