"""Shows Flower what a message is about. Of ticks it shows nothing, or they would push all else out."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from domain.commands.base import Command
from domain.model.lifecycle_events import DoDeploymentLifecycleEvent, RouteLifecycleType
from domain.text.errors import InvalidInputError
from domain.text.storable import storable
from tasks.messaging.queues import DO_IF_NEEDED_TASK, DO_ROUTE_TASK, DO_TASK

Arguments = Mapping[str, Any]

_PULSE = frozenset(RouteLifecycleType) - {RouteLifecycleType.START, RouteLifecycleType.STOP}
"""Looks that are made again and again while nothing happens."""
_MOST_CHARACTERS = 100
_MOST_IN_ALL = 1000


def notes_for_flower(task: str, positional: Sequence[Any], keywords: Arguments) -> dict[str, str | None]:
    """Headers of Celery's: the name that Flower shows, none for a tick, and the arguments that it shows.

        deploying/provisioning
        start on gpu-2
        rollway.activate_revision    deployment='web' revision='v2' actor='alice' request_id='42'

    Names are few: Flower counts by them, and never forgets one. No value of an object or a list is shown.
    """
    return {"shadow": _name(task, keywords), "argsrepr": "", "kwargsrepr": _about(positional, keywords)}


def is_shown(headers: Mapping[str, Any]) -> bool:
    """Whether Flower is told of a message with these notes."""
    return headers.get("shadow") is not None


def _name(task: str, keywords: Arguments) -> str | None:
    if "interval" in keywords:
        return None
    try:
        match task:
            case _ if task == DO_ROUTE_TASK:
                return _name_of_look(keywords)
            case _ if task in (DO_TASK, DO_IF_NEEDED_TASK):
                return str(DoDeploymentLifecycleEvent.parse(keywords["lifecycle_type"], keywords.get("sub_step")))
    except (KeyError, ValueError, TypeError, InvalidInputError):
        return task
    return task


def _name_of_look(keywords: Arguments) -> str | None:
    kind, host = RouteLifecycleType(keywords["route_lifecycle_type"]), keywords.get("host")
    if kind in _PULSE:
        return None
    return f"{kind} on {_short(host)}" if host else f"{kind} on each host"


def _about(positional: Sequence[Any], keywords: Arguments) -> str:
    fields = plain_fields(
        keywords.get("payload", positional[0] if positional else None), signed="signature" in keywords
    )
    return " ".join(f"{name}={value!r}" for name, value in fields.items())[:_MOST_IN_ALL]


def plain_fields(payload: object, *, signed: bool = False) -> dict[str, str | int | float]:
    """The plain values of a command's payload, its own fields first; of a text the beginning. No list, no object.

    A signed payload is the text of one.
    """
    payload = _literal(payload) if signed and isinstance(payload, str) else payload
    if not isinstance(payload, dict):
        return {}
    own = [name for name in payload if name not in Command.model_fields and name != "spec"]  # be it a text
    of_every_command = [name for name in ("actor", "reason", "request_id") if name in payload]
    fields = {_short(name): _short(payload[name]) for name in [*own, *of_every_command]}
    return {name: value for name, value in fields.items() if isinstance(value, str | int | float)}


def _literal(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _short(value: Any) -> Any:  # noqa: ANN401  (a text, or whatever else it was)
    return storable(value[:_MOST_CHARACTERS]) if isinstance(value, str) else value
