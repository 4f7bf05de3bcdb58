"""A subscription's settings: who is told of which transitions, and for how long that is tried."""

from typing import Annotated, Self

from pydantic import BaseModel, Field, model_validator

from domain.outbox.cloud_events import CloudEventType
from domain.words.errors import RollwayError
from domain.words.names import DeploymentName, Name

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
