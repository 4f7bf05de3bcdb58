"""A rolling update of real processes, by two real workers and beat, ends as promised; and so does one that is bad."""

import shlex

import pytest

from tests.support.rows.deployments import HERE
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e


def test_three_replicas_are_replaced_wave_by_wave(running_fleet: Fleet) -> None:
    fleet, name = running_fleet, "waves"
    fleet.deploy_first(name)
    fleet.add_revision(name, "v2")
    with fleet.watching_the_budget(name, floor=2, ceiling=4):
        fleet.activate(name, "v2")
        fleet.wait_until_ready(name, "v2", 3)

    assert fleet.steps(name) == ["1 need_retry", "2 need_retry", "3 need_retry", "4 success"]
    assert [rollout["outcome"] for rollout in fleet.rollouts(name)] == ["completed"]
    assert len(fleet.all_routes(name)) == 6
    eventually(lambda: len(fleet.replica_processes(name)) == 3, what="the old replicas to be gone")


def test_the_log_tells_a_rollout_step_by_step_and_what_became_of_its_replicas(running_fleet: Fleet) -> None:
    fleet, name = running_fleet, "logged"
    fleet.deploy_first(name, replicas=1)
    fleet.add_revision(name, "v2")
    rollout = fleet.activate(name, "v2")["rollout_id"]
    fleet.wait_until_ready(name, "v2", 1)
    eventually(lambda: "gone" in [line["to"] for line in _logged(fleet, name, "replica")], what="the last line")

    def decisions() -> list[dict[str, str]]:
        found = [line for line in _logged(fleet, name, "decided") if line.get("rollout") == rollout]
        return sorted(found, key=lambda line: int(line["step"]))

    steps = fleet.steps(name)  # the line of the last one is written after its commit, which is what shows here
    eventually(lambda: len(decisions()) >= len(steps), what="a line of each step")
    decided = decisions()
    assert [f"{line['step']} {line['verdict']}" for line in decided] == steps
    assert {line["revision"] for line in decided} == {"v2"}
    assert all(line["reason"] and line["task_id"] and line["level"] == "info" for line in decided)
    replicas = _logged(fleet, name, "replica")
    assert {(line["revision"], line["from"], line["to"]) for line in replicas} == {
        ("v1", "provisioning", "healthy"),
        ("v2", "provisioning", "healthy"),
        ("v1", "terminating", "gone"),
    }
    assert {line["host"] for line in replicas} == {HERE}


def _logged(fleet: Fleet, deployment: str, event: str) -> list[dict[str, str]]:
    """The lines of both workers about a deployment, by their keys."""
    lines = (fleet.log("worker1") + fleet.log("worker2")).splitlines()
    told = [shlex.split(line) for line in lines if f"event='{event}'" in line]
    found = [dict(word.partition("=")[::2] for word in words) for words in told]
    return [line for line in found if line.get("deployment") == deployment]


def test_a_broken_revision_goes_back_by_itself(running_fleet: Fleet) -> None:
    fleet, name = running_fleet, "broken"
    fleet.deploy_first(name)
    fleet.add_revision(name, "v2", BROKEN="start")
    with fleet.watching_the_budget(name, floor=2, ceiling=4):
        fleet.activate(name, "v2")
        eventually(
            lambda: [rollout["outcome"] for rollout in fleet.rollouts(name)] == ["rolled_back"], 60, "the way back"
        )
    fleet.wait_until_ready(name, "v1", 3)

    failed = fleet.routes(name, "failed")
    assert {route["revision"] for route in failed} == {"v2"}
    assert all("ended with exit code 1" in route["status_reason"] for route in failed)
    assert all("BROKEN=start" in route["log_tail"] for route in failed)


def test_a_revision_without_a_check_that_ends_after_its_start_replaces_nothing_that_runs(running_fleet: Fleet) -> None:
    fleet, name = running_fleet, "unchecked"
    fleet.deploy_first(name)
    ran = fleet.replica_processes(name)
    fleet.ask("add_revision", deployment=name, name="v2", spec={"command": ["sleep", "0.1"]})
    fleet.activate(name, "v2")
    eventually(lambda: [rollout["outcome"] for rollout in fleet.rollouts(name)] == ["rolled_back"], what="the way back")
    fleet.wait_until_ready(name, "v1", 3)
    assert len(set(ran) & set(fleet.replica_processes(name))) >= 2, "one may go first, by max_unavailable"


def test_scaling_and_destroying_leave_the_right_processes(running_fleet: Fleet) -> None:
    fleet, name = running_fleet, "scaled"
    fleet.deploy_first(name, replicas=2)
    fleet.ask("scale", deployment=name, desired_replicas=4)
    fleet.wait_until_ready(name, "v1", 4)
    fleet.ask("scale", deployment=name, desired_replicas=1)
    fleet.wait_until_ready(name, "v1", 1)
    eventually(lambda: len(fleet.replica_processes(name)) == 1, what="three replicas to be stopped")
    fleet.ask("destroy", deployment=name)
    eventually(lambda: fleet.state(name)["lifecycle"] == "destroyed", what="destroyed")
    assert fleet.replica_processes(name) == []


def test_a_replica_that_is_killed_is_replaced(running_fleet: Fleet) -> None:
    fleet, name = running_fleet, "killed"
    fleet.deploy_first(name, replicas=2)
    fleet.replica_processes(name)[0].kill()
    eventually(lambda: fleet.routes(name, "failed"), what="the loss to be noticed")
    fleet.wait_until_ready(name, "v1", 2)


def test_beat_alone_carries_a_rollout_when_the_wake_of_the_command_is_lost(running_fleet: Fleet) -> None:
    fleet, name = running_fleet, "unwoken"
    fleet.deploy_first(name)
    fleet.add_revision(name, "v2")
    fleet.activate(name, "v2", wake=False)
    fleet.wait_until_ready(name, "v2", 3)


def test_two_beats_do_no_double_work(running_fleet: Fleet) -> None:
    fleet, name = running_fleet, "two-beats"
    fleet.start_beat("second-beat")
    fleet.deploy_first(name)
    fleet.add_revision(name, "v2")
    fleet.activate(name, "v2")
    fleet.wait_until_ready(name, "v2", 3)
    assert fleet.steps(name) == ["1 need_retry", "2 need_retry", "3 need_retry", "4 success"]
    assert len(fleet.all_routes(name)) == 6


def test_a_metric_that_replicas_publish_moves_their_number(running_fleet: Fleet) -> None:
    fleet, name = running_fleet, "autoscaled"
    fleet.deploy_first(name, replicas=2)
    rule = {"metric": "requests_in_flight", "comparator": ">=", "threshold": 1.0, "step": 1, "max_replicas": 3}
    fleet.ask("set_autoscaling_rules", deployment=name, rules=[rule])
    fleet.wait_until_ready(name, "v1", 3)
    assert fleet.state(name)["desired_replicas"] == 3


def test_a_metric_that_another_service_pushes_moves_the_number_of_replicas(running_fleet: Fleet) -> None:
    fleet, name = running_fleet, "pushed"
    fleet.deploy_first(name, replicas=2)
    rule = {"metric": "backlog", "comparator": "<", "threshold": 5.0, "step": -1, "max_replicas": 3, "source": "pushed"}
    fleet.ask("set_autoscaling_rules", deployment=name, rules=[rule])
    fleet.ask("push_metric", deployment=name, metric="backlog", value=0.0)
    fleet.wait_until_ready(name, "v1", 1)
