"""Commands about who is told of transitions."""

from domain.commands.answers import SubscriptionDeleted, SubscriptionSet
from domain.commands.base import Command, Door
from domain.installation.tokens import Role
from domain.outbox.subscription import SubscriptionSettings
from domain.words.names import Name


class SetSubscription(Command, SubscriptionSettings):
    """Tell a webhook or a Celery task of transitions; replaces the subscription of that name."""

    task = "rollway.set_subscription"
    answer = SubscriptionSet
    door = Door("PUT", "/v1/subscriptions/{subscription}", Role.ADMIN, {"webhook": "ci"}, is_of_fleet=True)


class DeleteSubscription(Command):
    """End a subscription; what it has not been told yet it never is."""

    task = "rollway.delete_subscription"
    answer = SubscriptionDeleted
    door = Door("DELETE", "/v1/subscriptions/{subscription}", Role.ADMIN, is_of_fleet=True)

    subscription: Name
    """The name of the subscription."""
