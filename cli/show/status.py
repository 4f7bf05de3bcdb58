"""A deployment as `status` shows it: words, tables, and why it waits."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cli.terminal.output import ago, columns, roughly
from db.views.deployment_view import DeploymentView
from db.views.routes import RouteView
from db.views.timeline import RevisionView
from domain.model.picture import symbol
from domain.model.policy import RolloutLimits, StrategySpec
from domain.model.states import RouteStatus, TrafficStatus
from domain.replicas.answering import is_answering
from domain.words.numbers import duration, number_of

_SHOWN_REVISIONS = 5
_COLOURS = {
    RouteStatus.HEALTHY: "green",
    RouteStatus.PROVISIONING: "yellow",
    RouteStatus.DEGRADED: "yellow",
    RouteStatus.UNHEALTHY: "red",
    RouteStatus.FAILED: "red",
}
_TONES = {"good": "green", "moves": "cyan", "bad": "red"}


def short_id(route_id: UUID) -> str:
    """The last 8 digits: the first ones are a time, which routes of one rollout share."""
    return route_id.hex[-8:]


def route_colour(status: RouteStatus) -> str:
    """The colour that a status is written in."""
    return _COLOURS.get(status, "dim")


def deployments_table(views: Iterable[DeploymentView]) -> Table:
    """A line for each deployment."""
    table = columns("NAME", "STATE", "HEALTHY", "REVISION", "REPLICAS", "WHY")
    for view in views:
        healthy = sum(route.is_serving for route in view.routes)
        drawn = view.picture
        table.add_row(
            view.name,
            _state(view),
            f"{healthy}/{view.desired_replicas}",
            _revision(view),
            drawn,
            Text(view.said, "dim"),
        )
    return table


def deployment_page(
    view: DeploymentView,
    revisions: Sequence[RevisionView],
    failed: RouteView | None,
    reached: str,
    more: Mapping[str, Text],
    callers: Text | None = None,
) -> RenderableType:
    """Everything about one deployment. `reached`: where, in words; `more`: facts about its rollout, or the last one.

    `callers`: what they get, where that is known.
    """
    facts = columns("", "")
    facts.show_header = False
    for name, words in _facts(view, revisions, failed, reached, more):
        facts.add_row(Text(name, "dim"), words)
        if name == "replicas" and callers is not None:
            facts.add_row(Text("callers", "dim"), callers)
    head = Text.assemble((view.name, "bold"), "  ", _state(view), f" for {duration(view.now - view.phase_started_at)}")
    return Group(head, facts, Text(), routes_table(view.routes, view)) if view.routes else Group(head, facts)


def routes_table(routes: Iterable[RouteView], view: DeploymentView) -> Table:
    """A line for each replica."""
    table = columns("ROUTE", "REVISION", "STATUS", "HOST", "ADDRESS", "SINCE", "WHY")
    for route in routes:
        idle = ", no traffic" if route.is_active and route.traffic is TrafficStatus.INACTIVE else ""
        answering = ", but answering" if is_answering(route) else ""
        drawn = f"{symbol(route.status, route.traffic) or '·'} {route.status}{answering}{idle}"
        table.add_row(
            short_id(route.id),
            route.revision,
            Text(drawn, route_colour(route.status)),
            route.host or "-",
            route.address or "-",
            roughly(view.now - route.status_changed_at),
            Text("" if route.status is RouteStatus.HEALTHY else f"{route.reason}{_under_way(route, view.now)}", "dim"),
        )
    return table


def _under_way(route: RouteView, now: datetime) -> str:
    """None has begun after the drain did."""
    if not route.answers_under_way or route.drain_started_at is None:
        return ""
    answers = number_of(route.answers_under_way, "answer")
    return f"; {answers} under way for {duration(now - route.drain_started_at)} or longer"


def _facts(
    view: DeploymentView,
    revisions: Sequence[RevisionView],
    failed: RouteView | None,
    reached: str,
    more: Mapping[str, Text],
) -> Iterable[tuple[str, str | Text]]:
    drawn = view.picture
    yield "replicas", f"{drawn}  {_counts(view)}".strip()
    if late := view.overdue:
        yield "late", Text(late, "yellow")
    if view.maintenance:
        yield "callers get", Text(view.maintenance, "yellow")
    if why := view.why:
        is_under_way = view.standing.tone in ("moves", "warn", "bad")
        yield "why", f"{why} ('rollway why {view.name}' says more)" if is_under_way else why
    if view.unproven:
        yield "answers", Text(view.unproven, "yellow")
    if view.degraded_reason:
        retry = f" (tried again in {duration(view.retry_at - view.now)})" if view.retry_at else ""
        yield "degraded", Text(f"{view.degraded_reason}{retry}", "yellow")
    if view.rollout is not None:
        yield "rollout", _rollout(view)
    yield from more.items()
    yield "revision", _revision(view)
    yield "revisions", _names(view, revisions)
    yield "policy", policy_words(view.policy)
    yield "reached", reached
    if failed is not None:
        whose = f"{failed.revision} on {failed.host}" if failed.host else failed.revision
        when = ago(failed.status_changed_at, view.now)
        words = f"{failed.reason} ({whose}, {when}; rollway logs {short_id(failed.id)})"
        yield "last failed", Text(words, "red")


def policy_words(policy: dict[str, Any] | None) -> str:
    """rolling_update: max_surge 1, max_unavailable 1; timeout_seconds 300.

    What every policy has, `count_stopping` and the limits, is left out where it is the default.
    """
    if policy is None:
        return "none: a new revision replaces the old one without a rollout"
    usual = {**StrategySpec().model_dump(), **RolloutLimits().model_dump()}
    spec = ", ".join(f"{name} {_short(value)}" for name, value in policy["spec"].items() if value != usual.get(name))
    limits = ", ".join(
        f"{name} {_short(value)}"
        for name, value in policy["limits"].items()
        if name == "timeout_seconds" or value != usual.get(name)
    )
    return f"{policy['strategy']}: {spec}; {limits}"


def _short(value: object) -> str:
    """1, 5%, (errors (allowed 1%), at_least (requests 60)), 5% → 50%: what is none is left out."""
    match value:
        case float():
            return f"{value:g}"
        case bool():
            return "yes" if value else "no"
        case dict():
            return f"({', '.join(f'{name} {_short(part)}' for name, part in value.items() if part is not None)})"
        case list() | tuple():
            return " → ".join(map(_short, value))
    return "none" if value is None else str(value)


def _state(view: DeploymentView) -> Text:
    return Text(view.state, _TONES.get(view.standing.tone, "yellow"))


def _revision(view: DeploymentView) -> str:
    if view.deploying_revision:
        return f"{view.current_revision} → {view.deploying_revision}"
    return view.current_revision or "-"


def _counts(view: DeploymentView) -> str:
    counted = Counter(route.status for route in view.routes)
    seen = ", ".join(f"{count} {status}" for status in RouteStatus if (count := counted[status]))
    return f"{view.desired_replicas} wanted, {seen or 'none running'}"


def _rollout(view: DeploymentView) -> str:
    rollout = view.rollout
    if rollout is None:
        return "none"
    allowed = RolloutLimits.model_validate(rollout.limits).failures_allowed(view.desired_replicas)
    why = f' ("{rollout.reason}")' if rollout.reason else ""
    begun = f"by {rollout.actor}{why}, begun {ago(rollout.started_at, view.now)}"
    failures = f"{rollout.failed_routes} of {allowed} failures"
    if rollout.back_reason:
        return f"{begun}; {failures}; turned back, without a deadline: {rollout.back_reason}"
    clock = "its clock stands still" if rollout.clock_stopped_at else _time_left(rollout.deadline - view.now)
    return f"{begun}; {clock}; {failures}"


def _time_left(left: timedelta) -> str:
    return f"{duration(left)} left" if left > timedelta() else f"deadline passed {duration(left)} ago"


def _names(view: DeploymentView, revisions: Sequence[RevisionView]) -> str:
    if not revisions:
        return "none; 'rollway apply' adds one"
    names = [revision.name for revision in revisions[:_SHOWN_REVISIONS]]
    more = ", ..." if len(revisions) > _SHOWN_REVISIONS else ""
    return f"{', '.join(names)}{more} (newest first; current: {view.current_revision or 'none'})"
