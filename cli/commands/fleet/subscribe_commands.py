"""`rollway subscribe`, `unsubscribe` and `subscriptions`: receivers of transitions."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from cli.client import Reader
from cli.sending import Asker, asking
from cli.subcommands import sends
from cli.terminal.exits import UsageError
from cli.terminal.output import ago, columns, print_json, printer
from db.views.fleet_settings import SubscriptionView
from domain.commands.deeds import deed
from domain.commands.fleet_commands import DeleteSubscription, ForgetEvents, ResendEvents, SetSubscription

_Resend = Annotated[
    str | None,
    typer.Option("--resend", metavar="NAME", help="Send this one now all that waits or was given up."),
]
_Forget = Annotated[
    str | None,
    typer.Option("--forget", metavar="NAME", help="Forget all that waits for this one or was given up."),
]


@sends(
    SetSubscription,
    celery_task="--task",
    types="--type",
    deployments="--deployment",
    give_up_after_seconds="--give-up-after",
)
def subscribe(asker: Asker, **fields: object) -> None:
    """Send events to a webhook or a Celery task. Replaces the subscription of that name."""
    result = asker.send(SetSubscription, **fields)
    asker.say(deed(SetSubscription, result), result)


@sends(DeleteSubscription)
def unsubscribe(asker: Asker, subscription: str) -> None:
    """Remove a subscription. Events that were not sent yet are discarded."""
    result = asker.send(DeleteSubscription, subscription=subscription)
    asker.say(deed(DeleteSubscription, result), result)


@asking
def subscriptions(*, resend: _Resend = None, forget: _Forget = None, asker: Asker) -> None:
    """List subscriptions, resend events that were not delivered, or discard them.

    WAITING: events that are not delivered yet, and since when the first of them is. GIVEN UP: in the last 7 days.
    QUEUED: messages in the queue of a task; at 1,000 the task takes none, and events wait.
    """
    if resend is not None and forget is not None:
        raise UsageError("give either --resend or --forget")
    if resend is not None:
        result = asker.send(ResendEvents, subscription=resend)
        return asker.say(deed(ResendEvents, result), result)
    if forget is not None:
        result = asker.send(ForgetEvents, subscription=forget)
        return asker.say(deed(ForgetEvents, result), result)
    with Reader() as reader:
        views = reader.views(SubscriptionView, "/v1/subscriptions")
    if asker.as_json:
        return print_json([asdict(view) for view in views])
    if not views:
        return printer().print("No subscriptions; 'rollway subscribe --help' says how to add one.")
    table = columns("NAME", "TELLS", "OF", "WAITING", "GIVEN UP", "QUEUED", "WHY")
    for view in views:
        given_up = Text(str(view.given_up), "red" if view.given_up else "")
        queued = "-" if view.queued is None else str(view.queued)
        table.add_row(view.name, _way(view), _filter(view), _waiting(view), given_up, queued, _why(view))
    return printer().print(table, soft_wrap=False)


def _why(view: SubscriptionView) -> Text:
    if view.ended_at is None:
        return Text(view.why or "")
    return Text(f"ended {ago(view.ended_at, view.now)}: {view.ended_why}; 'rollway subscribe' begins again", "yellow")


def _way(view: SubscriptionView) -> str:
    return f"webhook {view.webhook}" if view.webhook else f"task {view.task} in {view.queue}"


def _filter(view: SubscriptionView) -> str:
    types = ", ".join(kind.removeprefix("rollway.") for kind in view.types) or "all"
    return f"{types} of {', '.join(view.deployments)}" if view.deployments else types


def _waiting(view: SubscriptionView) -> str:
    return f"{view.waiting}, since {ago(view.oldest_at, view.now)}" if view.oldest_at else "0"
