"""A rollout of real processes does what a person asks of it, in its middle too."""

import pytest

from domain.steering.activation import DeploymentAlreadyInProgressError
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e

BLUE_GREEN = {"strategy": "blue_green", "spec": {"auto_promote": False}}
SLOW = "1.0"


def begin(fleet: Fleet, name: str) -> None:
    """A rollout from v1 to a slow v2 has made its first step."""
    fleet.deploy_first(name)
    fleet.add_revision(name, "v2", STARTUP_SECONDS=SLOW)
    fleet.activate(name, "v2")
    eventually(lambda: fleet.steps(name), what="the first step")


def test_a_paused_rollout_stands_still_until_it_is_resumed(running_fleet: Fleet) -> None:
    fleet, name = running_fleet, "paused"
    begin(fleet, name)
    fleet.ask("pause", deployment=name)
    steps = fleet.steps(name)
    eventually(lambda: len(fleet.routes(name, "provisioning")) == 0, what="the replica in flight to come up")
    eventually(lambda: "paused" in fleet.state(name)["reason"], what="the reason to say so")
    assert fleet.steps(name) == steps
    fleet.ask("resume", deployment=name)
    fleet.wait_until_ready(name, "v2", 3)


def test_an_aborted_rollout_goes_back_within_its_budget(running_fleet: Fleet) -> None:
    fleet, name = running_fleet, "aborted"
    begin(fleet, name)
    with fleet.watching_the_budget(name, floor=2, ceiling=4):
        fleet.ask("abort", deployment=name, reason="second thoughts")
        fleet.wait_until_ready(name, "v1", 3)
    (rollout,) = fleet.rollouts(name)
    assert rollout["outcome"] == "rolled_back"
    assert rollout["back_reason"] == "aborted by test: second thoughts"


def test_asking_again_resumes_and_a_third_revision_is_refused_with_both_ways_out(running_fleet: Fleet) -> None:
    fleet, name = running_fleet, "asked-again"
    begin(fleet, name)
    fleet.add_revision(name, "v3")
    again = fleet.activate(name, "v2")
    assert again["activation"] == "resumed"
    with pytest.raises(DeploymentAlreadyInProgressError, match="or leave it for v3 with supersede"):
        fleet.activate(name, "v3")
    fleet.wait_until_ready(name, "v2", 3)
    assert len(fleet.rollouts(name)) == 1


def test_a_superseded_rollout_leaves_nothing_behind(running_fleet: Fleet) -> None:
    fleet, name = running_fleet, "superseded"
    begin(fleet, name)
    fleet.add_revision(name, "v3")
    fleet.ask("activate_revision", deployment=name, revision="v3", supersede=True)
    fleet.wait_until_ready(name, "v3", 3)
    assert [rollout["outcome"] for rollout in fleet.rollouts(name)] == ["superseded", "completed"]
    eventually(lambda: len(fleet.replica_processes(name)) == 3, what="the others to be gone")


def test_scaling_in_the_middle_of_a_rollout(running_fleet: Fleet) -> None:
    fleet, name = running_fleet, "scaled-midway"
    begin(fleet, name)
    fleet.ask("scale", deployment=name, desired_replicas=4)
    fleet.wait_until_ready(name, "v2", 4)


def test_destroying_in_the_middle_of_a_rollout(running_fleet: Fleet) -> None:
    fleet, name = running_fleet, "destroyed-midway"
    begin(fleet, name)
    fleet.ask("destroy", deployment=name)
    eventually(lambda: fleet.state(name)["lifecycle"] == "destroyed", what="destroyed")
    assert fleet.replica_processes(name) == []
    assert [rollout["outcome"] for rollout in fleet.rollouts(name)] == ["destroyed"]


def test_blue_green_waits_for_a_person_and_moves_all_traffic_at_once(running_fleet: Fleet) -> None:
    fleet, name = running_fleet, "blue-green"
    fleet.deploy_first(name, replicas=2, policy=BLUE_GREEN)
    fleet.add_revision(name, "v2")
    fleet.activate(name, "v2")
    eventually(lambda: "rollway promote" in fleet.state(name)["reason"], what="green to wait for a person")
    assert fleet.serving(name) == ["v1", "v1"]
    fleet.ask("promote", deployment=name)
    fleet.wait_until_ready(name, "v2", 2)


def test_parked_blue_comes_back_without_a_start_or_a_promotion(running_fleet: Fleet) -> None:
    fleet, name = running_fleet, "parked"
    fleet.deploy_first(
        name,
        replicas=2,
        policy={"strategy": "blue_green", "spec": {"auto_promote": False, "scale_down_delay_seconds": 600}},
    )
    fleet.add_revision(name, "v2")
    fleet.activate(name, "v2")
    fleet.ask("promote", deployment=name)
    eventually(lambda: fleet.serving(name) == ["v2", "v2"], what="green to be in")
    before = len(fleet.all_routes(name))
    fleet.ask("undo", deployment=name)
    eventually(lambda: fleet.serving(name) == ["v1", "v1"], what="blue to be back")
    assert len(fleet.all_routes(name)) == before == 4


def test_retrying_what_was_rolled_back(running_fleet: Fleet) -> None:
    fleet, name = running_fleet, "retried"
    begin(fleet, name)
    fleet.ask("abort", deployment=name)
    fleet.wait_until_ready(name, "v1", 3)
    fleet.ask("retry", deployment=name)
    fleet.wait_until_ready(name, "v2", 3)
    assert [rollout["outcome"] for rollout in fleet.rollouts(name)] == ["rolled_back", "completed"]


@pytest.mark.parametrize("how", ["held by its group", "paused"])
def test_all_replicas_of_a_rollout_that_may_not_go_are_killed_and_come_back(running_fleet: Fleet, how: str) -> None:
    fleet, first, name = running_fleet, f"first-{how[:4]}", f"second-{how[:4]}"
    fleet.deploy_first(first, replicas=1, policy=BLUE_GREEN)
    fleet.deploy_first(name, replicas=2)
    fleet.add_revision(first, "v2")
    fleet.add_revision(name, "v2")
    fleet.ask("set_group", group=f"pair-{how[:4]}", deployments=[first, name], in_order=True)
    fleet.activate(first, "v2")
    fleet.activate(name, "v2")
    eventually(lambda: "waits for the rollout" in (fleet.state(name)["reason"] or ""), what="it is held")
    if how == "paused":
        fleet.ask("pause", deployment=name)
    for process in fleet.replica_processes(name):
        process.kill()
    eventually(lambda: fleet.answers(name) == ["v1", "v1"], what="both are back")
    fleet.ask("scale", deployment=name, desired_replicas=3)
    eventually(lambda: fleet.answers(name) == ["v1", "v1", "v1"], what="the size is followed")
    assert fleet.steps(name) == [], "it has not moved"
