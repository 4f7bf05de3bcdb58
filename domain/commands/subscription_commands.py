"""Commands about who is told of transitions: a webhook or a task of another service."""

from domain.commands.base import Command
from domain.commands.results import Answer
from domain.installation.tokens import Role
from domain.outbox.delivery import SubscriptionSettings
from domain.text.name_patterns import Name


class SubscriptionSet(Answer):
    """A subscription is as it was asked for."""

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
    """Tell a webhook or a Celery task of transitions; replaces the subscription of that name."""

    task = "rollway.set_subscription"
    answer = SubscriptionSet
    role = Role.ADMIN
    is_of_fleet = True
    example = {"webhook": "ci"}


class DeleteSubscription(Command):
    """End a subscription; what it has not been told yet it never is."""

    task = "rollway.delete_subscription"
    answer = SubscriptionDeleted
    role = Role.ADMIN
    is_of_fleet = True

    subscription: Name
    """The name of the subscription."""


class ResendEvents(Command):
    """Send a subscription now what it has not been told, also what was given up."""

    task = "rollway.resend_events"
    answer = EventsTouched
    role = Role.ADMIN
    is_of_fleet = True

    subscription: Name
    """The name of the subscription."""


class ForgetEvents(Command):
    """Forget what a subscription has not been told, also what was given up."""

    task = "rollway.forget_events"
    answer = EventsTouched
    role = Role.ADMIN
    is_of_fleet = True

    subscription: Name
    """The name of the subscription."""
