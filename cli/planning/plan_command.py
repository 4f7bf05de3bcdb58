"""`rollway plan`: the limits, the waves as a table, the doubts."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from cli.client import Reader, signs_of_life
from cli.completion import deployments_offered, revisions_offered
from cli.options import AsJson
from cli.planning.plan_request import AskedAhead, Otherwise, asked_for
from cli.terminal.output import columns, print_json, printer
from domain.planning.plan_input import Subject
from domain.planning.replica_timings import Span
from domain.planning.rollout_plan import Plan, PlannedWave
from domain.planning.rollout_plan import plan as foresee

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
        questions = asked_for(reader, deployment, revision, file, otherwise)
        gaps = signs_of_life(reader).missing_evidence
    subjects = [(each, replace(each.subject, missing_evidence=gaps)) for each in questions]
    plans = [(each, _foreseen(each, subject)) for each, subject in subjects]
    if as_json:
        documents = [_document(each, forecast) for each, forecast in plans]
        return print_json(documents[0] if file is None else documents)
    for each, forecast in plans:
        printer().print(plan_page(each.title, forecast), soft_wrap=False)
    return None


def _foreseen(question: AskedAhead, subject: Subject) -> Plan:
    """The plan; what of a document may not be meant so comes before its other doubts."""
    forecast = foresee(subject, question.now, question.timings, question.chance())
    return replace(forecast, warnings=(*question.notes, *forecast.warnings))


def _document(question: AskedAhead, forecast: Plan) -> dict[str, Any]:
    return {
        "deployment": question.name,
        "from": question.from_revision,
        "to": question.to_revision,
        **forecast.as_json(),
    }


NOTHING = "  nothing is created or drained"


def plan_page(title: str, plan: Plan) -> RenderableType:
    """The whole plan; one line when it does nothing."""
    if not any(wave.does for wave in plan.waves):
        return Group(title, NOTHING, *_doubts(plan))
    table = columns("  WAVE", "REPLICAS", "BEGINS", "TAKES", "WHAT")
    for wave in plan.waves:
        table.add_row(f"  {wave.number}", wave.picture, _after(wave.begins), _span(wave.takes), _what(wave))
    return Group(title, *(f"  {line}" for line in _summary(plan)), table, *_doubts(plan))


def _summary(plan: Plan) -> Iterator[str]:
    yield plan.guarantee
    surplus = f", {plan.most_running} with those that stop or are parked" if plan.most_running > plan.most_live else ""
    yield f"at most {plan.most_live} live{surplus}; at least {plan.fewest_serving} serving"
    if plan.seconds is not None:
        yield f"takes {plan.seconds}: half of such rollouts are done after the first, nine of ten after the second"
    if not plan.is_certain:
        yield "the waves are one way that it can go: their order depends on which replica comes up, or is gone, first"


def _doubts(plan: Plan) -> list[Text]:
    return [Text(f"  ! {warning}", "yellow") for warning in plan.warnings]


def _after(begins: Span | None) -> str:
    if begins is None:
        return "-"
    return "at once" if begins.p90 < 1 else f"after {begins}"


def _span(takes: Span | None) -> str:
    return "-" if takes is None or takes.p90 == 0 else str(takes)


def _what(wave: PlannedWave) -> str:
    who = "a person" if wave.waits_for_person else "its judge" if wave.waits_for_judge else ""
    return f"{wave.does or wave.why}{who and f' (once {who} says so)'}"
