"""`rollway status` and `routes`."""

import os
import time
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from api.people.paths import DEPLOYMENT
from cli.client import Reader, build, deployment_named, existing_deployments, failure_to_show, signs_of_life
from cli.completion import deployments_offered
from cli.options import AsJson, DeploymentName
from cli.remote import remote
from cli.show.status import (
    callers_words,
    certificates_in_words,
    deployment_page,
    deployments_table,
    held_up,
    losing_words,
    reached_in_words,
    routes_table,
    silent_parts,
)
from cli.show.urls import envoy_address, page_address
from cli.terminal.exits import UsageError
from cli.terminal.output import ago, print_json, printer
from db.views.caller_views import CallersView, LosingView
from db.views.deployment_view import DeploymentView
from db.views.fleet_views import ReachedView
from db.views.rollout_views import RolloutView
from db.views.route_views import RouteView
from db.views.timeline import RevisionView
from stack.home.folder import find_home
from stack.stack_status import stack_status

_WATCH_SECONDS = 0.5
_LINES = 100


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
    lines: Annotated[
        int | None,
        typer.Option(
            "--lines",
            "-n",
            min=1,
            help=f"The most deployments that are shown; {_LINES}, or all with --json, unless it is given.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List deployments with their state; with a name, show one in full, and why it waits.

    In pictures, old | new: ■ healthy, □ healthy without traffic, △ degraded, ▲ unhealthy, ◇ starting, ✗ failed.
    """
    if watch and as_json:
        message = "--watch and --json do not go together: a script should poll 'rollway status --json'"
        raise UsageError(message)
    with Reader() as reader:
        if as_json:
            print_json(_document(reader, deployment, lines))
        elif watch:
            _watch(reader, deployment, lines or _LINES)
        else:
            printer().print(_page(reader, deployment, lines or _LINES), soft_wrap=False)


def routes(
    *,
    deployment: DeploymentName,
    everything: Annotated[bool, typer.Option("--all", help="Those that are gone, too.")] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=1, max=10_000, help="The most replicas that are shown with --all.")
    ] = 50,
    as_json: AsJson = False,
) -> None:
    """Show the replicas of a deployment. Each is called by the last 8 digits of its route's id."""
    with Reader() as reader:
        view = deployment_named(reader, deployment)
        path, views = f"{DEPLOYMENT}/routes", list(view.routes)
        if everything:
            views = reader.views(RouteView, path, deployment, gone=True, limit=lines)
    if as_json:
        return print_json(views)
    if not views:
        more = "" if everything else "; 'rollway routes --all' shows those that are gone"
        return printer().print(f"{deployment} has no replicas{more}.")
    return printer().print(routes_table(views, view), soft_wrap=False)


def _page(reader: Reader, name: str | None, lines: int) -> RenderableType:
    sentences = (*silent_parts(signs_of_life(reader)), *held_up())
    silent = [Text(f"! {sentence}", "yellow") for sentence in sentences]
    if name is not None:
        document = reader.ask(DEPLOYMENT, name)
        view = build(DeploymentView, document)
        failed = failure_to_show(reader, view)
        where = build(ReachedView, document)
        lines_of = (reached_in_words(where, envoy_address()), where.brings, *certificates_in_words(where))
        addresses = "\n".join(filter(None, lines_of))
        revisions = [build(RevisionView, each) for each in document["revisions"]]
        callers = callers_words(reader.view(CallersView, f"{DEPLOYMENT}/requests", name).now)
        more = _of_rollout(reader, view)
        return Group(deployment_page(view, revisions, failed, addresses, more, callers), *silent)
    views = existing_deployments(reader, lines + 1)
    losing = losing_words(reader.views(LosingView, "/v1/losing"))
    nothing = "No deployments yet; 'rollway init' makes one."
    cut = [f"There are more: 'rollway status -n {10 * lines}' shows them."] if len(views) > lines else []
    table = deployments_table(views[:lines]) if views else nothing
    return Group(_stack_line(), *silent, *losing, "", table, *cut)


def _of_rollout(reader: Reader, view: DeploymentView) -> dict[str, Text]:
    """The deviations of the rollout under way from its plan; without a rollout, how the last one ended."""
    if view.rollout_id is None:
        last = reader.views(RolloutView, f"{DEPLOYMENT}/rollouts", view.name, most=1)
        return {"last rollout": _ended(last[0], view.now)} if last else {}
    deviations = _deviations(reader, view.rollout_id)
    return {"not as planned": Text("\n".join(deviations), "yellow")} if deviations else {}


def _ended(rollout: RolloutView, now: datetime) -> Text:
    """The end of a rollout: back to v1 by rollway ("the new revision answered none of 25 requests")."""
    way = f"{'back ' if rollout.is_undo else ''}to {rollout.to_revision} by {rollout.actor}"
    why = f' ("{rollout.reason}")' if rollout.reason else ""
    ended = f"{(rollout.outcome or '').replace('_', ' ')} {ago(rollout.ended_at or now, now)}"
    back = f": {rollout.back_reason}" if rollout.back_reason else ""
    return Text(f"{way}{why}, {ended}{back}", "yellow" if back else "")


def _deviations(reader: Reader, rollout_id: UUID | None) -> list[str]:
    """The deviations of the rollout under way from its plan."""
    if rollout_id is None:
        return []
    return list(reader.ask("/v1/rollouts/{rollout}/plan", rollout_id)["deviations"])


def _stack_line() -> str:
    if (server := remote()) is not None:
        return f"asked: the server at {server.address}"
    stack = stack_status(find_home(os.environ))
    if stack.phase == "stopped":
        return "stack: the servers of DATABASE_URL and REDIS_URL; workers are not started from here"
    off = [f"{part.name} {part.state}" for part in stack.parts if part.state not in ("running", "external")]
    parts = ", ".join(part.name for part in stack.parts)
    advice = [stack.advice] if stack.advice else []
    page = [f"page: {page_address()}"] if page_address() else []
    return "; ".join((f"stack: {stack.phase} ({parts})", *([", ".join(off)] if off else []), *page, *advice))


def _document(reader: Reader, name: str | None, lines: int | None) -> dict[str, Any]:
    if name is None:
        deployments = reader.views(dict, "/v1/deployments", most=lines)
        return {
            "stack": asdict(stack_status(find_home(os.environ))) if remote() is None else None,
            "signs_of_life": asdict(signs_of_life(reader)),
            "losing": reader.ask("/v1/losing")["items"],
            "deployments": deployments,
        }
    document = reader.ask(DEPLOYMENT, name)
    view = build(ReachedView, document)
    deviations = _deviations(reader, document["rollout_id"])
    urls, callers = view.urls(envoy_address()), reader.ask(f"{DEPLOYMENT}/requests", name)["now"]
    return {**document, "urls": urls, "deviations": deviations, "callers": callers}


def _watch(reader: Reader, name: str | None, lines: int) -> None:
    from rich.live import Live  # noqa: PLC0415 -- a look without --watch is made without it

    console = printer()
    try:
        if not console.is_terminal:
            _print_changes(reader, name)
        with Live(_page(reader, name, lines), console=console, screen=False, refresh_per_second=4) as live:
            while True:
                time.sleep(_WATCH_SECONDS)
                live.update(_page(reader, name, lines))
    except KeyboardInterrupt:
        return


def _print_changes(reader: Reader, name: str | None) -> None:
    from cli.show.rollout_log import RolloutLog, followed  # noqa: PLC0415 -- a look without --watch is made without it

    films: dict[str, RolloutLog] = {}
    while True:
        views = [deployment_named(reader, name)] if name else existing_deployments(reader)
        for view in views:
            film = films.setdefault(view.name, RolloutLog(printer(), prefix="" if name else f"{view.name}  "))
            film.show(followed(reader, view.name, film))
        time.sleep(_WATCH_SECONDS)
