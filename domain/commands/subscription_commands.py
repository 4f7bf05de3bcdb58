"""Commands about subscriptions: a webhook or a task of another service that gets events."""

from domain.commands.base import Command
from domain.commands.results import Answer
from domain.installation.tokens import Role
from domain.outbox.delivery import SubscriptionSettings
from domain.text.name_patterns import Name


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
    """Events that a subscription has not been told are sent now, or forgotten."""

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
