"""`rollway subscribe`, `unsubscribe` and `subscriptions`: who is told of transitions."""

from dataclasses import asdict

from rich.text import Text

from cli.options import AsJson
from cli.sending import Asker
from cli.servers import Reader
from cli.subcommands import sends
from cli.terminal.output import ago, columns, print_json, printer
from db.views.fleet.settings import SubscriptionView
from domain.commands.subscriptions import DeleteSubscription, SetSubscription


@sends(
    SetSubscription,
    celery_task="--task",
    types="--type",
    deployments="--deployment",
    give_up_after_seconds="--give-up-after",
)
def subscribe(asker: Asker, **said: object) -> None:
    """Tell a webhook or a Celery task what happens. Replaces the subscription of that name."""
    result = asker.send(SetSubscription, **said)
    named = f"the task {result['task']} in queue {result['queue']}"
    told = f"the target {result['webhook']}" if result["webhook"] else named
    asker.say(f"{result['subscription']}: {told} is told from now on", result)


@sends(DeleteSubscription)
def unsubscribe(asker: Asker, subscription: str) -> None:
    """End a subscription. What it has not been told yet it never is."""
    asker.say(f"{subscription} is told no more", asker.send(DeleteSubscription, subscription=subscription))


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
