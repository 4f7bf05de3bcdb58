"""`rollway status`, `history` and `routes`."""

import os
import time
from dataclasses import asdict
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from cli.completing import deployments_offered
from cli.options import AsJson, DeploymentName
from cli.remote import remote
from cli.servers import Reader
from cli.show.reached import envoy_address, reached_in_words, urls_of
from cli.show.signs import silent_parts
from cli.show.status import deployment_page, deployments_table, routes_table
from cli.terminal.exits import UsageError
from cli.terminal.output import ago, columns, print_json, printer
from db.views.deployments import DeploymentView, deployment_named, existing_deployments
from db.views.documents import deployment_document, deployment_summary
from db.views.fleet.entrances import reached_at
from db.views.fleet.signs import signs_of_life
from db.views.routes import all_routes, last_failed_route
from db.views.timeline import HistoryView, history_of, revisions_of
from domain.model.deployment import Verdict
from stack.home.folder import find_home
from stack.status import stack_status

_REVISIONS = 20
_WATCH_SECONDS = 0.5


def status(
    *,
    deployment: Annotated[
        str | None,
        typer.Argument(
            metavar="[DEPLOYMENT]",
            help="One deployment in full.",
            show_default=False,
            autocompletion=deployments_offered,
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Stay and show every change; end it with Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show how everything is. With a name: one deployment in full, and why it waits.

    In pictures, old | new: ■ healthy, □ healthy without traffic, △ degraded, ▲ unhealthy, ◇ starting, ✗ failed.
    """
    if watch and as_json:
        message = "--watch and --json do not go together: a script should poll 'rollway status --json'"
        raise UsageError(message)
    with Reader() as reader:
        if as_json:
            print_json(_document(reader, deployment))
        elif watch:
            _watch(reader, deployment)
        else:
            printer().print(_page(reader, deployment), soft_wrap=False)


def history(
    *,
    deployment: DeploymentName,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, max=10_000, help="How many of the last records.")] = 30,
    as_json: AsJson = False,
) -> None:
    """Show what happened, who wanted it and why. The newest comes last."""
    with Reader() as reader:
        view = reader.read(deployment_named, deployment)
        records = reader.read(history_of, view.id, lines)
    if as_json:
        return print_json(records)
    table = columns("WHEN", "WHO", "WHAT", "WHY")
    table.columns[1].max_width = 16
    states = [""] + [record.target for record in records]
    for record, state in zip(records, states, strict=False):
        table.add_row(ago(record.updated_at, view.now), *_row(record, state))
    return printer().print(table, soft_wrap=False)


def _row(record: HistoryView, state: str) -> tuple[str, str, str]:
    """Who, what and why. A verdict is shown when it is bad, the state when it is not the one of the record before."""
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


def routes(
    *,
    deployment: DeploymentName,
    everything: Annotated[bool, typer.Option("--all", help="Those that are gone, too.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, max=10_000, help="At most so many with --all.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Show the replicas of a deployment. Each is called by the last 8 digits of its route's id."""
    with Reader() as reader:
        view = reader.read(deployment_named, deployment)
        found = reader.read(all_routes, view.id, lines) if everything else list(view.routes)
    if as_json:
        return print_json(found)
    if not found:
        more = "" if everything else "; 'rollway routes --all' shows those that are gone"
        return printer().print(f"{deployment} has no replicas{more}.")
    return printer().print(routes_table(found, view), soft_wrap=False)


def _page(reader: Reader, name: str | None) -> RenderableType:
    silent = [Text(f"! {sentence}", "yellow") for sentence in silent_parts(reader.read(signs_of_life))]
    if name is not None:
        view = reader.read(deployment_named, name)
        failed = reader.read(last_failed_route, view.id) if _has_failures(view) else None
        reached = reached_in_words(reader.read(reached_at, view.id), envoy_address())
        revisions = reader.read(revisions_of, view.id, _REVISIONS)
        return Group(deployment_page(view, revisions, failed, reached, _deviations(reader, view.rollout_id)), *silent)
    views = reader.read(existing_deployments)
    nothing = "No deployments yet; 'rollway apply -f examples/web.yaml' makes one."
    return Group(_stack_line(), *silent, "", deployments_table(views) if views else nothing)


def _deviations(reader: Reader, rollout_id: UUID | None) -> list[str]:
    """What the rollout under way does otherwise than planned."""
    if rollout_id is None:
        return []
    from db.audit.receipts import deviations_of  # noqa: PLC0415 -- a look at what is at rest is made without it

    return reader.read(deviations_of, rollout_id)


def _has_failures(view: DeploymentView) -> bool:
    return bool(view.failed_starts or view.degraded_reason or (view.rollout and view.rollout.failed_routes))


def _stack_line() -> str:
    if (server := remote()) is not None:
        return f"asked: the server at {server.address}"
    stack = stack_status(find_home(os.environ))
    if stack.phase == "stopped":
        return "stack: the servers of DATABASE_URL and REDIS_URL; workers are not started from here"
    off = [f"{part.name} {part.state}" for part in stack.parts if part.state not in ("running", "external")]
    parts = ", ".join(part.name for part in stack.parts)
    advice = [stack.advice] if stack.advice else []
    return "; ".join((f"stack: {stack.phase} ({parts})", *([", ".join(off)] if off else []), *advice))


def _document(reader: Reader, name: str | None) -> dict[str, Any]:
    if name is None:
        deployments = [deployment_summary(view) for view in reader.read(existing_deployments)]
        return {
            "stack": asdict(stack_status(find_home(os.environ))) if remote() is None else None,
            "signs_of_life": asdict(reader.read(signs_of_life)),
            "deployments": deployments,
        }
    document = reader.read(deployment_document, name)
    reached = reader.read(reached_at, document["id"])
    deviations = _deviations(reader, document["rollout_id"])
    return {**document, "urls": urls_of(reached, envoy_address()), "deviations": deviations}


def _watch(reader: Reader, name: str | None) -> None:
    from rich.live import Live  # noqa: PLC0415 -- a look without --watch is made without it

    console = printer()
    try:
        if not console.is_terminal:
            _print_changes(reader, name)
        with Live(_page(reader, name), console=console, screen=False, refresh_per_second=4) as live:
            while True:
                time.sleep(_WATCH_SECONDS)
                live.update(_page(reader, name))
    except KeyboardInterrupt:
        return


def _print_changes(reader: Reader, name: str | None) -> None:
    from cli.show.film import Film  # noqa: PLC0415 -- a look without --watch is made without it
    from db.views.progress import progress_of  # noqa: PLC0415

    films: dict[str, Film] = {}
    while True:
        views = [reader.read(deployment_named, name)] if name else reader.read(existing_deployments)
        for view in views:
            film = films.setdefault(view.name, Film(printer(), prefix="" if name else f"{view.name}  "))
            film.show(reader.read(progress_of, view.id, film.rollout_id, film.last_step))
        time.sleep(_WATCH_SECONDS)
