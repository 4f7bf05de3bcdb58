"""Sends an event: as CloudEvents 1.0 has it in JSON, signed as Standard Webhooks say; and when it is again."""

import base64
import hmac
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from domain.words.numbers import doubling_pause

MOST_QUEUED = 1000
"""Messages in the queue of a subscription by task: where so many lie, nobody takes them, and events wait here."""
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
    """The document as it is sent and signed."""
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


def failure(pending: Pending, why: str, *, wanted: bool = True) -> Failure:
    """Return what follows a try that failed.

    the receiver wants no more                -> given up, and the subscription ends
    it happened longer ago than give_up_after -> given up
    otherwise                                 -> tried again after 1, 2, 4 ... and then each 300 s
    """
    if not wanted:
        return Failure(why, None, ends=True)
    if pending.tried_at - pending.at >= pending.give_up_after:
        return Failure(why, None)
    return Failure(why, doubling_pause(pending.tries, first=1, longest=_LONGEST_PAUSE_SECONDS))
