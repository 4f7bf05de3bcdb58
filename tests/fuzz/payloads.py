"""Payloads of every task, as JSON brings them: each is answered, and what is refused has changed nothing."""

import json
from collections.abc import Mapping
from random import Random
from typing import Any
from uuid import UUID

from domain.commands.base import QUERIES
from tasks.command_tasks import TASKS
from tests.fuzz.hostile import changed
from tests.fuzz.world import World
from tests.support.workers.payloads import GIVEN

_SPECS: tuple[Mapping[str, Any], ...] = (
    {"command": ["serve"], "env": {"A": "1"}, "health_check": {"path": "/up", "interval_seconds": 1}},
    {"command": ["serve"], "health_check": {"protocol": "grpc", "service": "shop.Cart"}},
    {"command": ["serve"], "env": {"A": {"secret": "file:/run/secrets/a"}, "B": {"secret": "command:/bin/b c"}}},
    {"runtime": "docker", "docker": {"image": "web:1", "resources": {"memory": "512m"}, "volumes": {"/a": "/b"}}},
    {"runtime": "external", "external": {"task": "fleet.replica", "queue": "gpu"}},
)
_POLICIES: tuple[Mapping[str, Any], ...] = (
    {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": "25%"}, "limits": {"failure_budget": 3}},
    {"strategy": "blue_green", "spec": {"auto_promote": True}},
    {"strategy": "recreate"},
)


def _good(task: str, world: World, dice: Random) -> dict[str, Any]:
    """A payload that is taken, more or less."""
    name = task.removeprefix("rollway.")
    if task in QUERIES:
        return {"get_deployment": {"deployment": "web"}, "get_rollout": {"rollout_id": str(UUID(int=1))}}[name]
    payload = {
        "request_id": f"{dice.random()}",
        "actor": "ann",
        "reason": "sale",
        **GIVEN.get(name, {"deployment": "web"}),
    }
    match name:
        case "destroy":
            payload["deployment"] = f"d{dice.randrange(9)}"
        case "add_revision":
            payload["spec"] = dict(dice.choice(_SPECS))
        case "create_deployment":
            payload |= {"deployment": f"d{dice.randrange(9)}", "policy": dict(dice.choice(_POLICIES))}
        case "set_policy":
            payload["policy"] = dict(dice.choice(_POLICIES))
        case "activate_revision" | "undo":
            payload["revision"] = dice.choice(("v1", "v2"))
        case "set_traffic":
            payload |= {"hosts": ["web.example.com"], "path_prefix": "/api/", "request_timeout_seconds": 3}
        case "set_autoscaling_rules":
            rule = {"metric": "busy", "comparator": ">", "threshold": 1, "step": 1, "max_replicas": 5}
            payload["rules"] = [{**rule, "source": "pushed"}]
        case "report_route":
            payload |= {"route_id": str(dice.choice(world.routes)), "address": "10.0.0.7:80", "detail": "up"}
    return payload


def hostile_payload(world: World, dice: Random) -> tuple[str, object]:
    """A task's name and what it is sent, after its way through JSON."""
    task = dice.choice(sorted(TASKS))
    payload: object = _good(task, world, dice)
    for _ in range(dice.randrange(3)):
        payload = changed(payload, dice)
    return task, json.loads(json.dumps(payload))


def send_payload(world: World, dice: Random) -> None:
    """To the task, short of the worker: done or refused, and told as JSON."""
    task, payload = hostile_payload(world, dice)
    with world.unchanged_by_a_refusal() as outcome:
        told = TASKS[task](payload)
        outcome.refused = not told["ok"]
    assert json.loads(json.dumps(told)) == told, (told, task, payload)
    assert told["ok"] or (told["error"]["code"] and told["error"]["message"]), (told, task, payload)
