"""Who is told of transitions: the commands that say so."""

from typing import Any

from psycopg import Connection

from domain.commands.fleet import DeleteSubscription, SetSubscription
from domain.outbox.subscription import SubscriptionNotFoundError

_DEFAULT_QUEUE = "celery"

_SET = """
    INSERT INTO subscriptions (name, webhook, task, queue, types, deployments, give_up_after_seconds, actor)
    VALUES (%(name)s, %(webhook)s, %(task)s, %(queue)s, %(types)s, %(deployments)s, %(give_up_after_seconds)s,
            %(actor)s)
    ON CONFLICT (name) DO UPDATE
       SET webhook = excluded.webhook, task = excluded.task, queue = excluded.queue, types = excluded.types,
           deployments = excluded.deployments, give_up_after_seconds = excluded.give_up_after_seconds,
           actor = excluded.actor
"""


def set_subscription(connection: Connection, command: SetSubscription) -> dict[str, Any]:
    """Make the subscription, or replace what it says; what it has not been told yet goes the new way."""
    task = command.celery_task
    given = {
        "name": command.subscription,
        "webhook": command.webhook,
        "task": task,
        "queue": (command.queue or _DEFAULT_QUEUE) if task else None,
        "types": [kind.value for kind in command.types],
        "deployments": list(command.deployments),
        "give_up_after_seconds": command.give_up_after_seconds,
        "actor": command.actor,
    }
    connection.execute(_SET, given)
    return {"subscription": command.subscription, "webhook": command.webhook, "task": task, "queue": given["queue"]}


def delete_subscription(connection: Connection, command: DeleteSubscription) -> dict[str, Any]:
    """End it, with what it was still to be told. Raises SubscriptionNotFoundError."""
    found = connection.execute("DELETE FROM subscriptions WHERE name = %s", (command.subscription,)).rowcount
    if not found:
        message = f"there is no subscription {command.subscription}; 'rollway subscriptions' lists those that exist"
        raise SubscriptionNotFoundError(message, subscription=command.subscription)
    return {"subscription": command.subscription}
