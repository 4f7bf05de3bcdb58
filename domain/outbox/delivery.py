"""Events for subscribers: their settings, the form and signature of an event, and the times of retries."""

import base64
import hmac
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import BaseModel, Field, model_validator

from domain.outbox.cloud_events import CloudEventType
from domain.text.errors import RollwayError
from domain.text.numbers import doubling_pause
from domain.text.storable import DeploymentName, Name

MOST_FILTERED = 100
_DAY_SECONDS = 86_400
_Word = Annotated[str, Field(pattern=r"^\S+$", max_length=200)]


class SubscriptionNotFoundError(RollwayError):
    """No subscription has that name."""


class SubscriptionSettings(BaseModel):
    """The receiver, a webhook or a Celery task, and its events."""

    subscription: Name
    """The name of the subscription."""
    webhook: _Word | None = None
    """The name of a target that `ROLLWAY_WEBHOOKS` of the workers names."""
    celery_task: _Word | None = None
    """The name of your Celery task, which gets the event as its `payload`, in place of a webhook."""
    queue: _Word | None = None
    """The task's queue; left out, `celery`."""
    types: tuple[CloudEventType, ...] = Field((), max_length=MOST_FILTERED)
    """Only events of these types; none: all."""
    deployments: tuple[DeploymentName, ...] = Field((), max_length=MOST_FILTERED)
    """Only events of these deployments; none: all."""
    give_up_after_seconds: int = Field(_DAY_SECONDS, ge=1, le=30 * _DAY_SECONDS, strict=True)
    """The time after an event for which it is still sent again."""

    @model_validator(mode="after")
    def _one_way_to_tell(self) -> Self:
        if (self.webhook is None) == (self.celery_task is None):
            raise ValueError("needs one of webhook, the name of a target, and celery_task, a Celery task of yours")
        if self.queue is not None and self.celery_task is None:
            raise ValueError("queue belongs to celery_task: a webhook has none; leave it out")
        if self.celery_task is not None and self.celery_task.startswith(("rollway.", "celery.")):
            raise ValueError(f"celery_task must be one of yours; {self.celery_task} is none")
        return self


MOST_QUEUED = 1000
"""The most messages in the queue of a subscription by task: at this number nobody takes them, and events wait here."""
_LONGEST_PAUSE_SECONDS = 300
_SEQUENCE_DIGITS = 20


@dataclass(frozen=True, slots=True)
class Pending:
    """An event on its way to one subscription. `position`: its place among all; `tries`: with this one.

    `tried_at`: the database's time of this try. `webhook` is the name of a target, or else `task` and `queue` are set.
    """

    position: int
    id: UUID
    type: str
    deployment: str
    at: datetime
    data: Mapping[str, Any]
    installation: UUID
    subscription: str
    webhook: str | None
    task: str | None
    queue: str | None
    give_up_after: timedelta
    tries: int
    tried_at: datetime


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a try failed; when the next one is, counted from now; None: it is given up.

    `ends`: so is the subscription, with all that it has not been told.
    """

    why: str
    pause: timedelta | None
    ends: bool = False


def cloud_event(pending: Pending) -> dict[str, Any]:
    """The event as CloudEvents 1.0 writes it in JSON, the same in each try."""
    return {
        "specversion": "1.0",
        "id": str(pending.id),
        "source": f"/rollway/{pending.installation}",
        "type": pending.type,
        "subject": pending.deployment,
        "time": pending.at.isoformat(),
        "sequence": f"{pending.position:0{_SEQUENCE_DIGITS}}",
        "datacontenttype": "application/json",
        "data": dict(pending.data),
    }


def body_of(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def signed_headers(body: bytes, message_id: object, at: datetime, keys: Iterable[bytes]) -> dict[str, str]:
    """The headers of Standard Webhooks, with a signature by each key, so that a key can be changed without a gap."""
    timestamp = int(at.timestamp())
    content = f"{message_id}.{timestamp}.".encode() + body
    signatures = (base64.b64encode(hmac.digest(key, content, "sha256")).decode() for key in keys)
    return {
        "webhook-id": str(message_id),
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }


def failure(pending: Pending, why: str, *, is_wanted: bool = True) -> Failure:
    """The consequence of a failed try.

    the receiver wants no more                -> given up, and the subscription ends
    it happened longer ago than give_up_after -> given up
    otherwise                                 -> tried again after 1, 2, 4 ... and then each 300 s
    """
    if not is_wanted:
        return Failure(why, None, ends=True)
    if pending.tried_at - pending.at >= pending.give_up_after:
        return Failure(why, None)
    return Failure(why, doubling_pause(pending.tries, first=1, longest=_LONGEST_PAUSE_SECONDS))
