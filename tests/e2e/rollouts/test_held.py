"""A rollout that waits for its group or for a person keeps its replicas: those that die, those that are asked for."""

import pytest

from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e

BY_HAND = {"strategy": "blue_green", "spec": {"auto_promote": False}}


def healthy(fleet: Fleet, name: str) -> list[str]:
    """The revisions of the healthy replicas, as the replicas themselves say."""
    return fleet.answers(name)


@pytest.mark.parametrize("how", ["held by its group", "paused"])
def test_all_replicas_of_a_rollout_that_may_not_go_are_killed_and_come_back(running_fleet: Fleet, how: str) -> None:
    fleet, first, name = running_fleet, f"first-{how[:4]}", f"second-{how[:4]}"
    fleet.deploy_first(first, replicas=1, policy=BY_HAND)
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
    eventually(lambda: healthy(fleet, name) == ["v1", "v1"], what="both are back")
    fleet.ask("scale", deployment=name, desired_replicas=3)
    eventually(lambda: healthy(fleet, name) == ["v1", "v1", "v1"], what="the size is followed")
    assert fleet.steps(name) == [], "it has not moved"
