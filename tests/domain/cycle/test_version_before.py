"""What 0.1.0 wrote is understood by this release as it was meant: commands, contents of revisions, recorded steps.

The file was written by the code of 0.1.0 and is never made anew: of each kind of step there is the smallest.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from domain.commands.registry import parse_command
from domain.handlers.dispatch import is_same_decision, replay_step
from domain.revisions.revision import RevisionSpec, is_same, revision_name, stored_spec

WRITTEN = json.loads(Path(__file__).with_name("written_by_0_1_0.json").read_text(encoding="utf-8"))


def step_id(step: dict[str, Any]) -> str:
    strategy = step["inputs"]["deployment"]["rollout"]["policy"]["strategy"]
    return f"{strategy}, {step['phase']}: {step['decision']['reason']}"


def what_was_said(parsed: Any, said: Any) -> Any:
    """Without the fields that came later, at every depth."""
    if isinstance(parsed, dict) and isinstance(said, dict):
        return {name: what_was_said(parsed[name], said[name]) for name in said}
    return parsed


@pytest.mark.parametrize("step", WRITTEN["steps"], ids=step_id)
def test_a_step_that_the_version_before_recorded_is_decided_alike(step: dict[str, Any]) -> None:
    replayed = replay_step(step["inputs"], step["phase"])
    assert is_same_decision(step["decision"], replayed), f"{step['decision']} is now {replayed}"


def test_the_recorded_steps_are_of_each_strategy_both_ways_and_of_each_outcome() -> None:
    steps = WRITTEN["steps"]
    assert {step["inputs"]["deployment"]["rollout"]["policy"]["strategy"] for step in steps} == {
        "blue_green",
        "recreate",
        "rolling_update",
    }
    assert {step["phase"] for step in steps} == {"deploying_provisioning", "deploying_rolling_back"}
    assert {"success", "need_retry", "give_up"} <= {step["decision"]["verdict"] for step in steps}


@pytest.mark.parametrize("command", WRITTEN["commands"], ids=lambda command: command["task"])
def test_a_command_of_the_version_before_means_what_it_meant(command: dict[str, Any]) -> None:
    parsed = parse_command(command["task"], command["payload"]).model_dump(mode="json")
    assert what_was_said(parsed, command["payload"]) == command["payload"]


@pytest.mark.parametrize("revision", WRITTEN["revisions"], ids=lambda revision: revision["spec"]["runtime"])
def test_a_content_keeps_the_name_that_it_had_so_that_applying_a_file_again_changes_nothing(
    revision: dict[str, Any],
) -> None:
    spec = RevisionSpec.model_validate(revision["spec"])
    assert revision_name("web", spec) == revision["name"]
    assert is_same(revision["spec"], spec)
    assert stored_spec(json.dumps(revision["spec"])).unreadable is None


@pytest.mark.parametrize(
    ("says", "kept"),
    [
        (
            {"drain": "fixed", "drain_seconds": 8, "drain_max_seconds": 30, "stop_grace_seconds": 20},
            ("fixed", 8, 30, 20),
        ),
        ({"drain": "until_idle", "drain_seconds": -1, "drain_max_seconds": 1e300}, ("until_idle", 0, 86_400, 10)),
        ({"drain": "at_dusk", "drain_max_seconds": "long"}, ("until_idle", 2, 3600, 10)),
    ],
)
def test_of_a_content_that_cannot_be_read_it_is_kept_how_its_replicas_leave(
    says: dict[str, Any], kept: tuple[str, float, float, float]
) -> None:
    stored = stored_spec(json.dumps({"runtime": "podman", **says}))
    spec = stored.spec
    assert stored.unreadable is not None
    assert (spec.drain, spec.drain_seconds, spec.drain_max_seconds, spec.stop_grace_seconds) == kept


def test_a_content_with_a_field_of_a_later_release_is_another_one() -> None:
    revision = WRITTEN["revisions"][0]
    spec = RevisionSpec.model_validate(revision["spec"])
    assert not is_same({**revision["spec"], "colour": "green"}, spec)
    assert not is_same({**revision["spec"], "drain_seconds": 8.0}, spec)
