"""Payloads of commands, valid but for what a test puts in."""

from typing import Any
from uuid import uuid4

import pytest

from domain.commands.registry import parse_command
from domain.text.errors import InvalidInputError

RULE = {"metric": "busy", "comparator": ">", "threshold": 1, "step": 1, "max_replicas": 5}
GIVEN: dict[str, dict[str, Any]] = {
    "create_deployment": {"deployment": "web"},
    "add_revision": {"deployment": "web", "spec": {"command": ["serve"]}},
    "set_policy": {"deployment": "web", "policy": None},
    "set_traffic": {"deployment": "web"},
    "set_maintenance": {"deployment": "web", "state": "on"},
    "set_autoscaling_rules": {"deployment": "web", "rules": []},
    "push_metric": {"deployment": "web", "metric": "busy", "value": 1},
    "activate_revision": {"deployment": "web", "revision": "v1"},
    "scale": {"deployment": "web", "desired_replicas": 1},
    "forget_host": {"host": "alpha"},
    "drain_host": {"host": "alpha"},
    "undrain_host": {"host": "alpha"},
    "set_freeze": {"freeze": "night", "cron": "0 22 * * *", "duration_seconds": 3600, "deployments": ["nobody"]},
    "delete_freeze": {"freeze": "night"},
    "set_group": {"group": "shop", "deployments": ["web"]},
    "delete_group": {"group": "shop"},
    "set_subscription": {"subscription": "ci"},
    "report_route": {"route_id": str(uuid4()), "status": "healthy"},
}


def ask(command: str, /, **given: Any) -> Any:
    return parse_command(
        f"rollway.{command}", {"request_id": "r", **GIVEN.get(command, {"deployment": "web"}), **given}
    )


def variable(name: str) -> dict[str, Any]:
    return {"spec": {"command": ["serve"], "env": {name: ""}}}


def secrets(count: int) -> dict[str, Any]:
    env = {f"S{number}": {"secret": f"env:S{number}"} for number in range(count)}
    return {"spec": {"command": ["serve"], "env": env}}


def check(**given: Any) -> dict[str, Any]:
    return {"spec": {"command": ["serve"], "health_check": given}}


def docker(**given: Any) -> dict[str, Any]:
    return {"spec": {"runtime": "docker", "docker": {"image": "web", **given}}}


def external(**given: Any) -> dict[str, Any]:
    return {"spec": {"runtime": "external", "external": given}}


ELSEWHERE = external(webhook="https://example.com/replicas")["spec"]
"""Of replicas that another system runs, and reports."""


def rule(**given: Any) -> dict[str, Any]:
    return {"rules": [{**RULE, **given}]}


def labels(count: int) -> dict[str, str]:
    return {f"label{number}": "" for number in range(count)}


def expect_a_limit(command: str, taken: dict[str, Any], refused: dict[str, Any]) -> None:
    """The last value that is taken, and the first that is refused."""
    ask(command, **taken)
    with pytest.raises(InvalidInputError):
        ask(command, **refused)
