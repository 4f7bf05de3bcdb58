"""What is stored of a step: through JSON text and back, and decided once more."""

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.cycle.recording import decision_json, inputs_from_json, inputs_json
from domain.cycle.transitions import ClassifiedDecision
from domain.handlers.dispatch import (
    HANDLERS,
    cycle,
    handler_of,
    is_same_decision,
    records_a_failed_write,
    replay_step,
)
from domain.model.deployment import Deployment
from domain.model.policy import DeploymentPolicy, RolloutLimits, UnreadableSpec
from domain.model.states import RouteStatus, Verdict
from domain.text.errors import InvalidInputError
from tests.support.pictures.pictures import (
    NOW,
    READY,
    RECREATE,
    ROLLING_BACK,
    SCALING,
    V1,
    V2,
    blue_green,
    deploying,
    resting,
    rolling_back,
    rolling_update,
)
from tests.support.pictures.simulation import world_of
from tests.support.pictures.snapshots import Case, cases

REAL = st.sampled_from(RouteStatus)
EACH_STRATEGY = [
    rolling_update(1, 1),
    rolling_update("25%", 0, pacing="continuous", min_ready_seconds=1.5),
    rolling_update(0, 1, count_stopping=True),
    blue_green(auto_promote=True),
    blue_green(auto_promote=True, promote_delay_seconds=7, scale_down_delay_seconds=60, count_stopping=True),
    RECREATE,
]


def stored(deployment: Deployment, now: datetime) -> Any:
    return json.loads(inputs_json(deployment, now))


def said(decision: ClassifiedDecision) -> Any:
    return json.loads(decision_json(decision))


@given(
    cases(REAL),
    st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(timezone(timedelta(hours=5)))),  # noqa: DTZ001
    st.sampled_from([None, NOW]),
    st.builds(
        RolloutLimits,
        timeout_seconds=st.floats(0.001, 86400),
        progress_timeout_seconds=st.one_of(st.none(), st.floats(0.001, 86400)),
        failure_budget=st.one_of(st.none(), st.integers(1, 10_000)),
    ),
)
def test_the_inputs_of_any_cycle_survive_json_text(
    case: Case, now: datetime, stopped_at: datetime | None, limits: RolloutLimits
) -> None:
    deployment = replace(case.deployment, paused_at=stopped_at, degraded_reason="sæd", retry_at=now, phase_attempts=3)
    if deployment.rollout is not None:
        policy = replace(deployment.rollout.policy, limits=limits)
        deployment = replace(
            deployment, rollout=replace(deployment.rollout, policy=policy, clock_stopped_at=stopped_at, steps=9)
        )
    assert inputs_from_json(stored(deployment, now)) == (deployment, now)


@given(cases(REAL))
def test_any_decision_made_again_from_what_was_stored_is_the_same(case: Case) -> None:
    decision = cycle(case.deployment, NOW)
    assert replay_step(stored(case.deployment, NOW), handler_of(case.deployment).name) == said(decision)


@pytest.mark.parametrize("policy", EACH_STRATEGY, ids=lambda policy: policy.strategy)
@pytest.mark.parametrize(("begin", "starts_fail"), [(deploying, False), (deploying, True), (rolling_back, False)])
def test_every_step_of_whole_rollouts_is_replayed_to_the_same_decision(
    policy: DeploymentPolicy,
    begin: Any,
    starts_fail: bool,  # noqa: FBT001
) -> None:
    world = world_of(begin("■■■■|■", 4, policy=policy), stop_seconds=1, starts_fail=starts_fail)
    world.run(seconds=1800)
    assert world.deployment.status in ((READY, SCALING, ROLLING_BACK) if starts_fail else (READY,))
    steps = [(look.decision, look.at) for look in world.looks if look.decision.deployment.rollout]
    assert len(steps) > 1
    for decision, at in steps:
        assert replay_step(stored(decision.deployment, at), handler_of(decision.deployment).name) == said(decision)


@pytest.mark.parametrize("handler", HANDLERS.values(), ids=lambda handler: handler.name)
def test_every_handler_can_be_replayed_by_its_name(handler: Any) -> None:
    for target in handler.targets:
        deployment = deploying("■■|■", status=target) if target.sub_step else resting("■■", status=target)
        assert replay_step(stored(deployment, NOW), handler.name) == said(cycle(deployment, NOW, handler))


def test_a_route_that_is_created_has_no_id_in_what_is_stored() -> None:
    stored_decision = said(cycle(deploying("■■■|"), NOW))
    assert stored_decision["changes"]["rollout_specs"] == [{"revision_id": str(V2), "count": 1, "traffic": "active"}]
    assert stored_decision["desired_replicas"] == 3


def test_other_inputs_or_other_code_would_be_noticed() -> None:
    deployment = deploying("■■■|")
    inputs, decided = stored(deployment, NOW), said(cycle(deployment, NOW))
    assert replay_step(inputs, "deploying_provisioning") == decided
    assert replay_step(inputs, "deploying_rolling_back") != decided
    inputs["deployment"]["routes"][0]["revision_id"] = str(V2)
    assert replay_step(inputs, "deploying_provisioning") != decided
    assert inputs["deployment"]["routes"][1]["revision_id"] == str(V1)


def test_settings_that_this_release_cannot_read_fail_in_the_replay_as_they_did_in_the_cycle() -> None:
    policy = DeploymentPolicy("rolling_update", UnreadableSpec(stored={"max_surge": 1, "colour": "green"}))
    for deployment in (deploying("■■■|", policy=policy), deploying("■■■|", policy=replace(policy, strategy="gone"))):
        decided = cycle(deployment, NOW)
        assert decided.verdict is Verdict.ERROR
        assert replay_step(stored(deployment, NOW), "deploying_provisioning") == said(decided)


def test_an_unknown_phase_is_refused_naming_those_that_exist() -> None:
    with pytest.raises(InvalidInputError, match=r"phase must be one of check_pending, .*, not 'deployed'"):
        replay_step(stored(deploying("■■■|"), NOW), "deployed")


@pytest.mark.parametrize(
    ("attempts", "verdict", "is_refused"),
    [
        (0, "error", True),
        (0, "give_up", False),
        (3, "give_up", False),
        (4, "give_up", True),  # the fifth in a row
        (5, "give_up", True),
        (4, "success", False),
        (4, "expired", False),
    ],
)
def test_an_error_or_the_end_of_five_of_them_is_a_decision_that_postgres_refused(
    attempts: int, verdict: str, *, is_refused: bool
) -> None:
    assert records_a_failed_write(attempts, {"verdict": verdict}) is is_refused


def test_a_decision_is_the_same_in_other_words_and_without_what_earlier_releases_did_not_write() -> None:
    decided = said(cycle(deploying("■■■|"), NOW))
    assert is_same_decision({**decided, "reason": "in other words"}, decided)
    short = {name: value for name, value in decided["changes"].items() if name not in ("stage", "woken")}
    assert is_same_decision({**decided, "changes": short}, decided)
    for name, value in (("stage", {"number": 1, "weight": 500}), ("woken", [[str(V1), "active"]])):
        changes = {**decided["changes"], name: value}
        assert not is_same_decision({**decided, "changes": changes}, decided)
    assert not is_same_decision({**decided, "desired_replicas": 4}, decided)
