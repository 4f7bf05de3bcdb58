"""Who is told of which transitions, and for how long that is tried; and where webhooks may go."""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, model_validator

from domain.outbox.cloud_events import CloudEventType
from domain.words.errors import InvalidInputError, RollwayError
from domain.words.text import DeploymentName, Name

MOST_FILTERED = 100
_DAY_SECONDS = 86_400
_Word = Annotated[str, Field(pattern=r"^\S+$", max_length=200)]


class SubscriptionNotFoundError(RollwayError):
    """No subscription has that name."""


class SubscriptionSettings(BaseModel):
    """The receiver, one of a webhook and a Celery task, and what it is told."""

    subscription: Name
    """The name of the subscription."""
    webhook: _Word | None = None
    """The name of a target that `ROLLWAY_WEBHOOKS` of the workers names."""
    celery_task: _Word | None = None
    """Or the name of a Celery task of yours, which gets the event as its `payload`."""
    queue: _Word | None = None
    """The task's queue; left out, `celery`."""
    types: tuple[CloudEventType, ...] = Field((), max_length=MOST_FILTERED)
    """Only events of these types; none: all."""
    deployments: tuple[DeploymentName, ...] = Field((), max_length=MOST_FILTERED)
    """Only events of these deployments; none: all."""
    give_up_after_seconds: int = Field(_DAY_SECONDS, ge=1, le=30 * _DAY_SECONDS, strict=True)
    """How long after it happened an event is still sent again."""

    @model_validator(mode="after")
    def _one_way_to_tell(self) -> Self:
        if (self.webhook is None) == (self.celery_task is None):
            raise ValueError("needs one of webhook, the name of a target, and celery_task, a Celery task of yours")
        if self.queue is not None and self.celery_task is None:
            raise ValueError("queue belongs to celery_task: a webhook has none; leave it out")
        if self.celery_task is not None and self.celery_task.startswith(("rollway.", "celery.")):
            raise ValueError(f"celery_task must be one of yours; {self.celery_task} is none")
        return self


_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_PREFIX = "whsec_"
_LEAST_BYTES, _MOST_BYTES = 24, 64


@dataclass(frozen=True, slots=True)
class Target:
    """A receiver. `keys`: of the secrets, the newest first; neither they nor the URL are ever shown."""

    url: str = field(repr=False)
    keys: tuple[bytes, ...] = field(repr=False)


def parse_targets(text: str) -> Mapping[str, Target]:
    """The targets by name, from lines `name = URL whsec_...`. Raises InvalidInputError naming the line, no secret."""
    targets: dict[str, Target] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, _, rest = (part.strip() for part in line.partition("="))
        url, *secrets = rest.split() or [""]
        keys = tuple(map(_key, secrets))
        if not _NAME.fullmatch(name) or name in targets or not _is_url(url) or not keys or b"" in keys:
            right = (
                f"'name = URL {_PREFIX}...': a name, once, an http or https URL, and one secret or more, "
                f"{_LEAST_BYTES} to {_MOST_BYTES} bytes in base64 after {_PREFIX}, as 'openssl rand -base64 32' makes"
            )
            raise InvalidInputError(f"line {number} must be {right}", field=f"line {number}")
        targets[name] = Target(url, keys)
    return targets


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _key(secret: str) -> bytes:
    """Empty for what is no secret."""
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return b""
    return key if secret.startswith(_PREFIX) and _LEAST_BYTES <= len(key) <= _MOST_BYTES else b""
