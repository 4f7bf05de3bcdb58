"""The documented rights of each command, and the examples of bodies that people copy from the reference."""

from typing import Any

import pytest

from domain.commands.apply.templates import HTTP_SERVICE
from domain.commands.base import POLICY, QUERIES, SPEC
from domain.commands.registry import COMMANDS, parse_command
from domain.installation.tokens import Role

VIEWER, RELEASER, OPERATOR, ADMIN = Role
RIGHTS = {
    RELEASER: "scale activate_revision restart pause resume promote abort undo retry",
    OPERATOR: "apply add_revision set_maintenance rolling_update push_metric report_route",
    ADMIN: (
        "create_deployment set_policy set_traffic set_autoscaling_rules destroy forget_host drain_host undrain_host "
        "set_freeze delete_freeze set_group delete_group set_subscription delete_subscription resend_events "
        "forget_events"
    ),
}
OF_THE_FLEET = (
    "forget_host drain_host undrain_host report_route set_freeze delete_freeze set_group delete_group "
    "set_subscription delete_subscription resend_events forget_events"
)
PLANNED = "apply scale activate_revision restart rolling_update pause resume promote abort undo retry"


def tasks(words: str) -> set[str]:
    return {f"rollway.{word}" for word in words.split()}


def test_who_may_give_a_command_is_documented() -> None:
    for role, words in RIGHTS.items():
        assert {task for task, command in COMMANDS.items() if command.role is role} == tasks(words)
    assert {task for task, command in COMMANDS.items() if command.is_of_fleet} == tasks(OF_THE_FLEET)


def test_what_can_be_planned_first_is_documented() -> None:
    assert {task for task, command in COMMANDS.items() if command.is_planned} == tasks(PLANNED)


def test_the_queries_are_documented() -> None:
    assert set(QUERIES) == {"rollway.get_deployment", "rollway.get_rollout"}


EXAMPLES: dict[str, dict[str, Any]] = {
    "apply": {
        "documents": [{"deployment": "web", "replicas": 3, "revision": SPEC, "policy": POLICY}],
        "reason": "ticket 7",
    },
    "create_deployment": {"deployment": "web", "policy": POLICY},
    "add_revision": {"name": "v2", "spec": SPEC},
    "set_policy": {"policy": POLICY},
    "set_traffic": {"hosts": ["web.example.com"]},
    "set_maintenance": {"state": "on", "reason": "the database moves"},
    "set_autoscaling_rules": {
        "rules": [
            {
                "metric": "queue_length",
                "comparator": ">",
                "threshold": 100,
                "step": 1,
                "min_replicas": 2,
                "max_replicas": 9,
            }
        ]
    },
    "scale": {"desired_replicas": 5},
    "activate_revision": {"revision": "v2", "reason": "ticket 7"},
    "restart": {"reason": "a new certificate"},
    "rolling_update": {"command": ["python", "app.py", "2"]},
    "pause": {"reason": "looking at the logs"},
    "abort": {"reason": "it is slow"},
    "push_metric": {"metric": "queue_length", "value": 12.0},
    "report_route": {"status": "healthy"},
    "set_freeze": {"cron": "0 18 * * FRI", "time_zone": "Europe/Berlin", "duration_seconds": 216_000},
    "set_group": {"deployments": ["web"], "most_at_once": 1},
    "set_subscription": {"webhook": "ci"},
}
IN_THE_PATH = {
    "deployment": "web",
    "host": "m1",
    "freeze": "weekend",
    "group": "shop",
    "subscription": "ci",
    "route_id": "0199c3d2-5f1e-7c41-9a02-3b1f6a7d8e90",
}


@pytest.mark.parametrize("task", COMMANDS)
def test_the_example_of_a_body_is_the_documented_one_and_needs_only_what_is_in_the_path(task: str) -> None:
    command = COMMANDS[task]
    assert dict(command.example) == EXAMPLES.get(task.removeprefix("rollway."), {})
    path = {name: value for name, value in IN_THE_PATH.items() if name in command.model_fields}
    assert isinstance(parse_command(task, {"request_id": "r", **path, **command.example}), command)


def test_the_examples_show_what_the_first_template_shows() -> None:
    command, policy = (
        ["python", "app.py"],
        {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 0}},
    )
    assert {"command": command, "health_check": {"path": "/health"}} == dict(SPEC)
    assert policy == dict(POLICY)
    for line in ("path: /health", "strategy: rolling_update", "spec: {max_surge: 1, max_unavailable: 0}"):
        assert f"  {line}\n" in HTTP_SERVICE.text
