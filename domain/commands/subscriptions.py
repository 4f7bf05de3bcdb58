"""Commands about who is told of transitions."""

from domain.commands.answers import SubscriptionDeleted, SubscriptionSet
from domain.commands.base import Command
from domain.outbox.subscription import SubscriptionSettings
from domain.words.names import Name


class SetSubscription(Command, SubscriptionSettings):
    """Tell a webhook or a Celery task of transitions; replaces the subscription of that name."""

    task = "rollway.set_subscription"
    answer = SubscriptionSet


class DeleteSubscription(Command):
    """End a subscription; what it has not been told yet it never is."""

    task = "rollway.delete_subscription"
    answer = SubscriptionDeleted

    subscription: Name
    """Its name."""
