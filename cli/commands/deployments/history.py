"""`rollway history`: what happened to a deployment, or in the whole fleet within the last hour."""

from typing import Annotated

import typer

from cli.completing import deployments_offered
from cli.options import AsJson
from cli.reads import deployment_named, signs_of_life
from cli.servers import Reader
from cli.terminal.output import ago, columns, print_json, printer
from db.views.fleet.lately import HappenedView
from db.views.timeline import HistoryView
from domain.commands.base import DEPLOYMENT
from domain.model.states import Verdict


def history(
    *,
    deployment: Annotated[
        str | None,
        typer.Argument(
            metavar="[DEPLOYMENT]",
            help="Only this one, from its beginning on.",
            show_default=False,
            autocompletion=deployments_offered,
        ),
    ] = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, max=10_000, help="How many of the last records.")] = 30,
    as_json: AsJson = False,
) -> None:
    """Show what happened, who wanted it and why; without a name in the whole fleet within the last hour.

    The newest comes last.
    """
    if deployment is None:
        return _history_of_all(lines, as_json=as_json)
    with Reader() as reader:
        view = deployment_named(reader, deployment)
        records = reader.views(HistoryView, f"{DEPLOYMENT}/history", deployment, most=lines)[::-1]
    if as_json:
        return print_json(records)
    table = columns("WHEN", "WHO", "WHAT", "WHY")
    table.columns[1].max_width = 16
    states = [""] + [record.target for record in records]
    for record, state in zip(records, states, strict=False):
        table.add_row(ago(record.updated_at, view.now), *_row(record, state))
    return printer().print(table, soft_wrap=False)


def _history_of_all(lines: int, *, as_json: bool) -> None:
    with Reader() as reader:
        now = signs_of_life(reader).now
        records = reader.views(HappenedView, "/v1/history", limit=lines)[::-1]
    if as_json:
        return print_json(records)
    if not records:
        return printer().print(
            "Nothing has happened within the last hour; 'rollway history NAME' shows what did before."
        )
    table = columns("WHEN", "DEPLOYMENT", "WHO", "WHAT", "WHY")
    table.columns[2].max_width = 16
    states: dict[str, str] = {}
    for record in records:
        row = _row(record, states.get(record.deployment, ""))
        table.add_row(ago(record.updated_at, now), record.deployment, *row)
        states[record.deployment] = record.target
    return printer().print(table, soft_wrap=False)


def _row(record: HistoryView, state: str) -> tuple[str, str, str]:
    """Say who, what and why. A verdict is shown when it is bad, the state when it differs from the record before."""
    bad = f" {record.result}" if record.result in (Verdict.ERROR, Verdict.EXPIRED, Verdict.GIVE_UP) else ""
    moved = f"→ {record.target}: " if record.target != state and state else ""
    times = f" ({record.attempts} times)" if record.attempts > 1 else ""
    if record.attempts > 1 and record.result == Verdict.NEED_RETRY:  # each did something else
        times = f" (the last of {record.attempts} steps)"
    return (
        "-" if record.actor == record.phase else record.actor,
        f"{record.phase}{bad}",
        f"{moved}{record.message}{times}",
    )
