"""`rollway plan`."""

from typing import Annotated, Any

import typer

from cli.completing import deployments_offered, revisions_offered
from cli.foresight.asked import AskedAhead, Otherwise, asked_for
from cli.options import AsJson
from cli.servers import Reader
from cli.show.plan import plan_page
from cli.terminal.output import print_json, printer
from domain.foresight.plan.foreseen import Plan
from domain.foresight.plan.foreseen import plan as foresee

Deployment = Annotated[
    str | None,
    typer.Argument(
        metavar="[DEPLOYMENT]",
        help="Name of the deployment.",
        show_default=False,
        autocompletion=deployments_offered,
    ),
]
Revision = Annotated[
    str | None,
    typer.Argument(
        metavar="[REVISION]",
        help="To be activated; left out: the rest of what is under way.",
        autocompletion=revisions_offered,
    ),
]
File = Annotated[
    str | None,
    typer.Option("--file", "-f", metavar="FILE", help="What applying it would do; - reads standard input."),
]


def plan(
    *,
    deployment: Deployment = None,
    revision: Revision = None,
    file: File = None,
    otherwise: Otherwise = None,
    as_json: AsJson = False,
) -> None:
    """Show what a change will do before it starts, wave by wave. Touches nothing.

    The decisions are those that the workers would make, run in a simulated world in which no replica fails. Times are
    learned from the deployment's past replicas: half of such rollouts are done by the first number, nine of ten by the
    second.
    """
    with Reader() as reader:
        asked = asked_for(reader, deployment, revision, file, otherwise)
    plans = [(each, foresee(each.subject, each.now, each.learned, each.chance())) for each in asked]
    if as_json:
        documents = [_document(each, foreseen) for each, foreseen in plans]
        return print_json(documents[0] if file is None else documents)
    for each, foreseen in plans:
        printer().print(plan_page(each.title, foreseen), soft_wrap=False)
    return None


def _document(asked: AskedAhead, foreseen: Plan) -> dict[str, Any]:
    return {"deployment": asked.name, "from": asked.from_revision, "to": asked.to_revision, **foreseen.as_json()}
