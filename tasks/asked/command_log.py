"""What the log tells of commands that came as messages: a line for each, whether it was carried out or refused."""

import logging
from collections.abc import Mapping
from typing import Any

import structlog

from domain.commands.replicas import PushMetric
from tasks.wire.shown import plain_fields

_log = structlog.get_logger(__name__)


def log_answer(task: str, given: Mapping[str, object], told: Mapping[str, Any]) -> None:
    """A line at level info; at level debug where nothing changed.

    `given`: the arguments of the message. `told`: the answer to it.
    """
    asked = plain_fields(given.get("payload"), signed="signature" in given)
    if "sender" in given:
        asked["actor"] = str(given["sender"])
    result = told.get("result", {})
    facts: dict[str, object] = {
        "command": task,
        "deployment": asked.get("deployment", result.get("deployment")),
        "revision": result.get("revision", asked.get("revision")),
        "rollout": result.get("rollout_id"),
        **{name: asked.get(name) for name in ("actor", "request_id")},
    }
    if told["ok"]:
        _log.log(_level(task, told), "asked", **facts, reason=asked.get("reason", ""))
    else:
        _log.info("refused", **facts, code=told["error"]["code"], reason=told["error"]["message"])


def _level(task: str, told: Mapping[str, Any]) -> int:
    """A metric is no change of a deployment, nor is what was so before, nor a question, which has no `repeated`."""
    result: Mapping[str, Any] = told["result"]
    changed = not (told.get("repeated", True) or result.get("already", False)) and result.get("applied", True)
    return logging.INFO if changed and task != PushMetric.task else logging.DEBUG
