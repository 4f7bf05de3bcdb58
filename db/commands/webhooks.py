"""Subscriptions to transitions, and the events that they have not received yet."""

from collections.abc import Callable, Mapping
from typing import Any, LiteralString

from psycopg import Connection

from domain.commands.base import Command
from domain.commands.fleet_commands import DeleteSubscription, ForgetEvents, ResendEvents, SetSubscription
from domain.outbox.delivery import SubscriptionNotFoundError
from domain.text.errors import InvalidInputError

_DEFAULT_QUEUE = "celery"

_SET = """
    INSERT INTO subscriptions (name, webhook, task, queue, types, deployments, give_up_after_seconds, actor)
    VALUES (%(name)s, %(webhook)s, %(task)s, %(queue)s, %(types)s, %(deployments)s, %(give_up_after_seconds)s,
            %(actor)s)
    ON CONFLICT (name) DO UPDATE
       SET webhook = excluded.webhook, task = excluded.task, queue = excluded.queue, types = excluded.types,
           deployments = excluded.deployments, give_up_after_seconds = excluded.give_up_after_seconds,
           actor = excluded.actor, ended_at = NULL, ended_why = NULL
"""

_TARGETS = """
    SELECT webhooks IS NULL AS is_unknown, coalesce(webhooks, '{}') FROM hosts WHERE down_since IS NULL
"""

_NAMED = "SELECT FROM subscriptions WHERE name = %s"
_RESEND = "UPDATE outbox SET due_at = clock_timestamp(), given_up_at = NULL WHERE subscription = %s"
_FORGET = "DELETE FROM outbox WHERE subscription = %s"


def set_subscription(connection: Connection, command: SetSubscription) -> dict[str, Any]:
    """Make the subscription, or replace what it says; what it has not been told yet goes the new way.

    Raises InvalidInputError for a webhook that no host knows.
    """
    if command.webhook is not None:
        _refuse_unknown(connection, command.webhook)
    task = command.celery_task
    values = {
        "name": command.subscription,
        "webhook": command.webhook,
        "task": task,
        "queue": (command.queue or _DEFAULT_QUEUE) if task else None,
        "types": [kind.value for kind in command.types],
        "deployments": list(command.deployments),
        "give_up_after_seconds": command.give_up_after_seconds,
        "actor": command.actor,
    }
    connection.execute(_SET, values)
    return {"subscription": command.subscription, "webhook": command.webhook, "task": task, "queue": values["queue"]}


def _refuse_unknown(connection: Connection, webhook: str) -> None:
    """Refuse a webhook that no host knows. It may be right where no host is up, or one does not report its targets."""
    hosts = connection.execute(_TARGETS).fetchall()
    targets = sorted({name for _, names in hosts for name in names})
    if hosts and webhook not in targets and not any(is_unknown for is_unknown, _ in hosts):
        others = ", ".join(targets) or "none"
        message = f"no host that is up has a target {webhook} in its ROLLWAY_WEBHOOKS; they have {others}"
        raise InvalidInputError(message, field="webhook")


def resend_events(connection: Connection, command: ResendEvents) -> dict[str, Any]:
    """Have all that it has not been told be sent now, what was given up too. Raises SubscriptionNotFoundError."""
    return _with_events(connection, command.subscription, _RESEND)


def forget_events(connection: Connection, command: ForgetEvents) -> dict[str, Any]:
    """Forget all that it has not been told, what was given up too. Raises SubscriptionNotFoundError."""
    return _with_events(connection, command.subscription, _FORGET)


def _with_events(connection: Connection, name: str, statement: LiteralString) -> dict[str, Any]:
    if connection.execute(_NAMED, (name,)).fetchone() is None:
        raise _no_subscription(name)
    return {"subscription": name, "events": connection.execute(statement, (name,)).rowcount}


def _no_subscription(name: str) -> SubscriptionNotFoundError:
    message = f"there is no subscription {name}; 'rollway subscriptions' lists those that exist"
    return SubscriptionNotFoundError(message, subscription=name)


def delete_subscription(connection: Connection, command: DeleteSubscription) -> dict[str, Any]:
    """End it, with what it was still to be told. Raises SubscriptionNotFoundError."""
    cursor = connection.execute("DELETE FROM subscriptions WHERE name = %s", (command.subscription,)).rowcount
    if not cursor:
        raise _no_subscription(command.subscription)
    return {"subscription": command.subscription}


EFFECTS: Mapping[type[Command], Callable[[Connection, Any], dict[str, Any]]] = {
    SetSubscription: set_subscription,
    DeleteSubscription: delete_subscription,
    ResendEvents: resend_events,
    ForgetEvents: forget_events,
}
