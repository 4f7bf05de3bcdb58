"""`rollway subscribe`, `unsubscribe` and `subscriptions`: who is told of transitions."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from cli.options import AsJson
from cli.sending import Asker, asking
from cli.servers import Reader
from cli.terminal.output import ago, columns, print_json, printer
from db.views.fleet.subscriptions import SubscriptionView
from domain.commands.fleet import DeleteSubscription, SetSubscription

_Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the subscription.", show_default=False)]
_Webhook = Annotated[
    str | None,
    typer.Option("--webhook", metavar="TARGET", help="A target in the workers' ROLLWAY_WEBHOOKS.", show_default=False),
]
_Task = Annotated[
    str | None, typer.Option("--task", metavar="TASK", help="A Celery task of yours.", show_default=False)
]
_Queue = Annotated[
    str | None, typer.Option("--queue", metavar="QUEUE", help="The task's queue.", show_default="celery")
]
_Types = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="TYPE", help="Only events of this type; may be repeated.", show_default="all"),
]
_Deployments = Annotated[
    list[str] | None,
    typer.Option("--deployment", metavar="DEPLOYMENT", help="Only of this one; may be repeated.", show_default="all"),
]
_GiveUpAfter = Annotated[
    int, typer.Option("--give-up-after", metavar="SECONDS", help="How long after it happened an event is sent again.")
]


@asking
def subscribe(
    *,
    name: _Name,
    webhook: _Webhook = None,
    task: _Task = None,
    queue: _Queue = None,
    types: _Types = None,
    deployments: _Deployments = None,
    give_up_after: _GiveUpAfter = 86_400,
    asker: Asker,
) -> None:
    """Tell a webhook or a Celery task what happens. Replaces the subscription of that name."""
    result = asker.send(
        SetSubscription,
        subscription=name,
        webhook=webhook,
        celery_task=task,
        queue=queue,
        types=types or [],
        deployments=deployments or [],
        give_up_after_seconds=give_up_after,
    )
    told = f"the target {webhook}" if webhook else f"the task {task} in queue {result['queue']}"
    asker.say(f"{name}: {told} is told from now on", result)


@asking
def unsubscribe(*, name: _Name, asker: Asker) -> None:
    """End a subscription. What it has not been told yet it never is."""
    asker.say(f"{name} is told no more", asker.send(DeleteSubscription, subscription=name))


def subscriptions(*, as_json: AsJson = False) -> None:
    """Show who is told of transitions.

    WAITING: events that are not delivered yet, and since when the first of them is. GIVEN UP: in the last 7 days.
    """
    with Reader() as reader:
        found = reader.views(SubscriptionView, "/v1/subscriptions")
    if as_json:
        return print_json([asdict(view) for view in found])
    if not found:
        return printer().print("Nobody is told of events; 'rollway subscribe --help' says how.")
    table = columns("NAME", "TELLS", "OF", "WAITING", "GIVEN UP", "WHY")
    for view in found:
        given_up = Text(str(view.given_up), "red" if view.given_up else "")
        table.add_row(view.name, _way(view), _filter(view), _waiting(view), given_up, view.why or "")
    return printer().print(table, soft_wrap=False)


def _way(view: SubscriptionView) -> str:
    return f"webhook {view.webhook}" if view.webhook else f"task {view.task} in {view.queue}"


def _filter(view: SubscriptionView) -> str:
    types = ", ".join(kind.removeprefix("rollway.") for kind in view.types) or "all"
    return f"{types} of {', '.join(view.deployments)}" if view.deployments else types


def _waiting(view: SubscriptionView) -> str:
    return f"{view.waiting}, since {ago(view.oldest_at, view.now)}" if view.oldest_at else "0"
