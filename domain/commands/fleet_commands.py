"""Commands about the fleet: freeze windows, and groups that share a budget of rollouts, subscriptions to events."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Self

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, AwareDatetime, Field, model_validator

from domain.commands.base import Command
from domain.commands.results import Answer
from domain.installation.tokens import Role
from domain.outbox.delivery import SubscriptionSettings
from domain.text.storable import DeploymentName, Name

MOST_NAMED = 1000
LONGEST_SECONDS = 31 * 86_400
_FIELDS = 5


def _cron(line: str) -> str:
    if len(line.split()) != _FIELDS:
        raise ValueError("must be a cron line of five fields, such as '0 18 * * FRI'")
    try:
        begins = next(CronSim(line, datetime(2000, 1, 1, tzinfo=UTC)), None)
    except CronSimError as error:
        raise ValueError(f"must be a cron line, such as '0 18 * * FRI'; {str(error).lower()}") from None
    if begins is None:
        raise ValueError("must be a cron line that comes true some day")
    return line


Cron = Annotated[str, Field(max_length=200), AfterValidator(_cron)]
Meant = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,53})?\*?$")]
"""The name of a deployment, or the beginning of names followed by *."""


class FreezeSet(Answer):
    """The freeze now has these settings."""

    freeze: str
    """The name of the freeze."""
    frozen_until: str | None
    """The end of the window that is on now, in ISO 8601."""
    starts_at: str | None
    """The beginning of the next window."""
    deployments: tuple[str, ...]
    """The deployments, or name prefixes that end in *, that it blocks; with no groups either: all."""
    groups: tuple[str, ...]
    """The groups that it blocks."""


class FreezeDeleted(Answer):
    """A freeze has ended."""

    freeze: str
    """The name of the freeze."""


class GroupSet(Answer):
    """The group now has these settings."""

    group: str
    """The name of the group."""
    deployments: tuple[str, ...]
    """The deployments of the group, in their order."""
    most_at_once: int | None
    """The most deployments that may roll out at once."""
    in_order: bool
    """Whether each deployment waits for those before it."""


class GroupDeleted(Answer):
    """A group has ended."""

    group: str
    """The name of the group."""


_GROUP = {"deployments": ["web"], "most_at_once": 1}
_EXAMPLE = {"cron": "0 18 * * FRI", "time_zone": "Europe/Berlin", "duration_seconds": 216_000}


class SetFreeze(Command):
    """Block new rollouts for a time; replaces the freeze of that name. Undo and abort always work."""

    task = "rollway.set_freeze"
    answer = FreezeSet
    role = Role.ADMIN
    is_of_fleet = True
    example = _EXAMPLE

    freeze: Name
    """The name of the freeze."""
    cron: Cron | None = None
    """The beginning of each window, as a cron line of five fields, such as `0 18 * * FRI`."""
    time_zone: Annotated[str, Field(max_length=100)] = "UTC"
    """The time zone of the cron line, such as `Europe/Berlin`."""
    duration_seconds: int | None = Field(None, ge=60, le=LONGEST_SECONDS, strict=True)
    """The duration of each window; without cron and starts_at: of one window that begins now."""
    starts_at: AwareDatetime | None = None
    """The beginning of a single window, instead of a cron line."""
    ends_at: AwareDatetime | None = None
    """The end of a single window."""
    deployments: tuple[Meant, ...] = Field((), max_length=MOST_NAMED)
    """Names, or name prefixes that end in *. Leave this and groups empty for all deployments."""
    groups: tuple[Name, ...] = Field((), max_length=MOST_NAMED)
    """The groups whose deployments it blocks too."""
    pauses: bool = False
    """Whether running rollouts wait too, with their clocks stopped; otherwise they finish."""

    @model_validator(mode="after")
    def _one_window(self) -> Self:
        ways = ({"cron", "duration_seconds"}, {"duration_seconds"}, {"starts_at", "ends_at"})
        if {name for way in ways for name in way if getattr(self, name) is not None} not in ways:
            raise ValueError("needs duration_seconds, with cron or from now on, or starts_at and ends_at")
        if self.starts_at is not None and self.ends_at is not None and self.ends_at <= self.starts_at:
            raise ValueError("ends_at must be later than starts_at")
        return self

    def with_window(self, now: datetime) -> Self:
        """The freeze with both of its ends, where it begins now."""
        if self.cron is not None or self.duration_seconds is None:
            return self
        ends_at = now + timedelta(seconds=self.duration_seconds)
        return self.model_copy(update={"starts_at": now, "ends_at": ends_at, "duration_seconds": None})


class DeleteFreeze(Command):
    """End a freeze; rollouts that it held continue."""

    task = "rollway.delete_freeze"
    answer = FreezeDeleted
    role = Role.ADMIN
    is_of_fleet = True

    freeze: Name
    """The name of the freeze."""


class SetGroup(Command):
    """Let deployments share a budget of rollouts; replaces the group of that name."""

    task = "rollway.set_group"
    answer = GroupSet
    role = Role.ADMIN
    is_of_fleet = True
    example = _GROUP

    group: Name
    """The name of the group."""
    deployments: tuple[DeploymentName, ...] = Field(min_length=1, max_length=MOST_NAMED)
    """The names of its deployments, which need not exist yet; each may be in one group."""
    most_at_once: int | None = Field(None, ge=1, le=MOST_NAMED, strict=True)
    """The most deployments that may roll out at once; left out: any number."""
    in_order: bool = False
    """Whether each deployment waits until none before it has a rollout under way."""

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if len(set(self.deployments)) != len(self.deployments):
            raise ValueError("deployments names one of them twice")
        return self


class DeleteGroup(Command):
    """Delete a group; its deployments stay, and no longer wait for each other."""

    task = "rollway.delete_group"
    answer = GroupDeleted
    role = Role.ADMIN
    is_of_fleet = True

    group: Name
    """The name of the group."""


class SubscriptionSet(Answer):
    """The subscription now has these settings."""

    subscription: str
    """The name of the subscription."""
    webhook: str | None
    """The name of its target."""
    task: str | None
    """The Celery task that is sent."""
    queue: str | None
    """The queue of the task."""


class SubscriptionDeleted(Answer):
    """A subscription has ended."""

    subscription: str
    """The name of the subscription."""


class EventsTouched(Answer):
    """The remaining events of a subscription are sent now, or forgotten."""

    subscription: str
    """The name of the subscription."""
    events: int
    """The number of events."""


class SetSubscription(Command, SubscriptionSettings):
    """Send events to a webhook or a Celery task; replaces the subscription of that name."""

    task = "rollway.set_subscription"
    answer = SubscriptionSet
    role = Role.ADMIN
    is_of_fleet = True
    example = {"webhook": "ci"}


class DeleteSubscription(Command):
    """End a subscription; events that it has not got yet are dropped."""

    task = "rollway.delete_subscription"
    answer = SubscriptionDeleted
    role = Role.ADMIN
    is_of_fleet = True

    subscription: Name
    """The name of the subscription."""


class ResendEvents(Command):
    """Send a subscription its remaining events now, also those that were given up."""

    task = "rollway.resend_events"
    answer = EventsTouched
    role = Role.ADMIN
    is_of_fleet = True

    subscription: Name
    """The name of the subscription."""


class ForgetEvents(Command):
    """Forget a subscription's remaining events, also those that were given up."""

    task = "rollway.forget_events"
    answer = EventsTouched
    role = Role.ADMIN
    is_of_fleet = True

    subscription: Name
    """The name of the subscription."""
