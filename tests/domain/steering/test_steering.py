"""What each command makes of a deployment, and what it is refused for: the ladders of domain/steering as tables."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.cycle.rollout import NoRolloutError
from domain.model.deployment import Deployment
from domain.model.states import DeploymentLifecycleStatus, RolloutOutcome
from domain.steering.activation import restarted_revision
from domain.steering.verbs import destroy, scale, undo
from domain.text.errors import WrongStateError
from tests.support.people.people import Ended, activate_revision, ask, asking, request, retry_rollout
from tests.support.pictures.pictures import (
    DESTROYED,
    DESTROYING,
    NOW,
    PENDING,
    READY,
    ROLLING_BACK,
    SCALING,
    V2,
    V3,
    blue_green,
    deploying,
    resting,
    rolling_back,
    rolling_update,
)

LATER = NOW + timedelta(seconds=40)
ROLLING = rolling_update()
PAUSED = deploying("■■|◇", paused_at=NOW, rollout={"clock_stopped_at": NOW})
GREEN = deploying("■■■|□□□", policy=blue_green(auto_promote=False))


@pytest.mark.parametrize("status", [PENDING, SCALING, READY, DESTROYING, DESTROYED], ids=str)
@pytest.mark.parametrize("command", ["pause", "resume", "promote", "abort"])
def test_without_a_rollout_there_is_nothing_to_steer(status: DeploymentLifecycleStatus, command: str) -> None:
    with pytest.raises(NoRolloutError, match=f"web is {status}: there is no rollout to {command}"):
        ask(command, resting("■■■", status=status), LATER)


@pytest.mark.parametrize(
    ("command", "deployment", "refusal", "said"),
    [
        ("resume", deploying("■■|◇"), WrongStateError, "web is not paused"),
        ("promote", deploying("■■|◇"), WrongStateError, "a rolling_update moves the traffic by itself"),
        ("promote", replace(GREEN, status=ROLLING_BACK), WrongStateError, "'rollway retry web' turns it forward"),
        ("promote", replace(GREEN, paused_at=NOW), WrongStateError, "web is paused; resume it, then promote it"),
        ("retry", resting("■■■", status=READY), NoRolloutError, "the last rollout of web is none"),
    ],
)
def test_a_command_out_of_place_is_refused(
    command: str, deployment: Deployment, refusal: type[Exception], said: str
) -> None:
    with pytest.raises(refusal, match=said):
        ask(command, deployment, LATER)


@pytest.mark.parametrize(
    ("command", "deployment"),
    [
        ("pause", PAUSED),
        ("promote", replace(GREEN, rollout=GREEN.rollout and replace(GREEN.rollout, promote_requested=True))),
        ("abort", rolling_back("■■|■")),
        ("undo", rolling_back("■■|■")),
        ("destroy", resting("■■■", status=DESTROYING)),
        ("destroy", resting("■■■", status=DESTROYED)),
    ],
)
def test_asking_again_changes_nothing(command: str, deployment: Deployment) -> None:
    steered = ask(command, deployment, LATER)
    assert (steered.already, steered.deployment) == (True, deployment)


def test_a_pause_stops_the_clocks_and_a_resume_leaves_them_to_the_next_cycle() -> None:
    paused = ask("pause", deploying("■■|◇"), LATER).deployment
    assert paused.rollout is not None
    assert (paused.paused_at, paused.rollout.clock_stopped_at, paused.version) == (LATER, LATER, 2)
    resumed = ask("resume", paused, LATER).deployment
    assert (resumed.paused_at, resumed.rollout, resumed.version) == (None, paused.rollout, 3)


def test_a_promotion_is_remembered_until_green_is_complete() -> None:
    rollout = ask("promote", GREEN, LATER).deployment.rollout
    assert rollout is not None
    assert rollout.promote_requested


@pytest.mark.parametrize("command", ["abort", "undo"])
@pytest.mark.parametrize("deployment", [deploying("■■|■"), PAUSED, replace(PAUSED, status=ROLLING_BACK)])
def test_going_back_needs_no_resume_and_takes_the_size_with_it(command: str, deployment: Deployment) -> None:
    sized = replace(deployment, desired_replicas=8)
    steered = ask(command, sized, LATER)
    back = steered.deployment
    assert (back.status, back.paused_at, back.desired_replicas) == (ROLLING_BACK, None, 3)
    assert back.rollout is not None
    assert back.rollout.clock_stopped_at is None
    assert steered.back_reason == {"abort": "aborted by ann", "undo": "undone by ann"}[command]


def test_by_force_a_deployment_ends_with_its_replicas_though_it_is_being_destroyed_already() -> None:
    leaving = resting("■■◌", status=DESTROYING)
    steered = destroy(leaving, asking(leaving, LATER), force=True)
    assert (steered.already, steered.gives_up_replicas, steered.deployment.routes) == (False, True, ())
    assert steered.sentence == "asked for by force, 3 replicas taken as stopped"
    ended = resting("", status=DESTROYED)
    assert destroy(ended, asking(ended, LATER), force=True).already


@pytest.mark.parametrize(
    ("deployment", "ended"),
    [(deploying("■■|■"), RolloutOutcome.DESTROYED), (PAUSED, RolloutOutcome.DESTROYED), (resting("■"), None)],
)
def test_whatever_it_does_a_deployment_can_be_destroyed(deployment: Deployment, ended: RolloutOutcome | None) -> None:
    steered = ask("destroy", deployment, LATER)
    gone = steered.deployment
    assert (gone.status, gone.rollout, gone.deploying_revision_id, gone.paused_at) == (DESTROYING, None, None, None)
    assert (steered.ended, gone.phase_started_at) == (ended, LATER)


@pytest.mark.parametrize("deployment", [deploying("■■|■"), rolling_back("■■|■")])
def test_a_size_asked_for_in_a_rollout_is_the_size_of_both_revisions(deployment: Deployment) -> None:
    rollout = scale(deployment, 5).deployment.rollout
    assert rollout is not None
    assert (rollout.desired_at_start, rollout.desired_with_revision) == (5, None)


def test_scaling_tries_again_at_once_what_was_given_up() -> None:
    tired = resting("■■", status=READY, degraded_reason="no port is free", retry_at=LATER)
    scaled = scale(tired, 5)
    assert (scaled.deployment.degraded_reason, scaled.deployment.retry_at) == (None, None)
    assert (scaled.sentence, scaled.details) == ("from 3 to 5 replicas", {"from": 3, "to": 5})
    assert scale(tired, 3).sentence == ""


@pytest.mark.parametrize("status", [DESTROYING, DESTROYED], ids=str)
def test_what_is_being_destroyed_is_not_scaled(status: DeploymentLifecycleStatus) -> None:
    with pytest.raises(WrongStateError, match="it can be scaled until it is destroyed"):
        scale(resting("■■■", status=status), 5)


def test_asking_for_the_running_revision_resumes_it_where_it_is_paused() -> None:
    steered = activate_revision(PAUSED, V2, ROLLING, LATER)
    assert (steered.details["activation"], steered.deployment.paused_at) == ("resumed", None)


def test_an_undo_to_what_is_under_way_takes_its_place_with_the_size_that_came_with_it() -> None:
    deployment = deploying("■■|■", 5, paused_at=NOW, rollout={"desired_at_start": 3, "desired_with_revision": 5})
    steered = undo(deployment, request(deployment, V2, ROLLING), asking(deployment, LATER))
    rollout = steered.deployment.rollout
    assert steered.details["activation"] == "superseded"
    assert rollout is not None
    assert (rollout.is_undo, rollout.desired_with_revision, rollout.desired_at_start) == (True, 5, 3)
    assert (steered.deployment.paused_at, steered.deployment.desired_replicas) == (None, 5)
    again = undo(steered.deployment, request(deployment, V2, ROLLING), asking(deployment, LATER))
    assert again.details["activation"] == "resumed"


@pytest.mark.parametrize("outcome", [RolloutOutcome.COMPLETED, RolloutOutcome.SUPERSEDED, RolloutOutcome.DESTROYED])
def test_only_what_was_rolled_back_is_retried(outcome: RolloutOutcome) -> None:
    rollout = deploying("■■|■").rollout
    assert rollout is not None
    with pytest.raises(NoRolloutError, match=f"the last rollout of web is {outcome}"):
        retry_rollout(resting("■■■", status=READY), ROLLING, [Ended(rollout, outcome)], LATER)


def test_what_a_rollout_is_superseded_with_lends_its_policy_where_there_is_none_any_more() -> None:
    steered = activate_revision(GREEN, V3, None, LATER, supersede=True)
    assert steered.deployment.rollout is not None
    assert steered.deployment.rollout.policy == blue_green(auto_promote=False)


@pytest.mark.parametrize(
    ("deployment", "said"),
    [
        (deploying("■■|◇"), "web is deploying/provisioning; restart it when that has ended, or abort it"),
        (resting("", status=PENDING), "there is no revision that could be restarted"),
        (resting("■■■", status=DESTROYING), "there is no revision that could be restarted"),
    ],
)
def test_what_is_under_way_or_does_not_run_is_not_restarted(deployment: Deployment, said: str) -> None:
    with pytest.raises(WrongStateError, match=said):
        restarted_revision(deployment)
    assert restarted_revision(resting("■■■")) == resting("■■■").current_revision_id
