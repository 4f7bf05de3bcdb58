"""Checks what all workers are asked at once: to be looked at, or to send task events; not told what to do."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from tasks.wire.envelope import Properties, UnfitMessageError, decoded, made_anew, reason_of

_STRICT = ConfigDict(strict=True, extra="ignore")


class Broadcast(BaseModel):
    """A message to all workers, as Kombu writes it."""

    model_config = _STRICT

    properties: Properties
    body: str


class CeleryQuestion(BaseModel):
    """The questions of `celery inspect`, and of Flower every five seconds. Celery knows more, such as `shutdown`."""

    model_config = _STRICT

    method: Literal[
        "ping", "stats", "active", "reserved", "scheduled", "revoked", "registered", "active_queues", "conf", "report",
        "query_task", "clock", "enable_events"
    ]  # fmt: skip


def checked_broadcast(given: object) -> dict[str, Any]:
    """A question to all workers, made anew from what was checked. Raises UnfitMessageError."""
    try:
        broadcast = Broadcast.model_validate(given)
        CeleryQuestion.model_validate(decoded(broadcast.body))
    except ValidationError as error:
        raise UnfitMessageError(reason_of(error)) from None
    return made_anew(broadcast.body, {}, queue="")
