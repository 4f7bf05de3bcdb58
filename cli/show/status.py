"""The output of `status` about a deployment: words, tables, the reason to wait, and its addresses."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from cli.client import Reader, deployment_named, signs_of_life
from cli.terminal.output import ago, columns, printer, roughly
from db.certificates import hosts_without
from db.views.caller_views import AnsweringView, LosingView
from db.views.deployment_view import DeploymentView
from db.views.fleet_views import ReachedView, SignsOfLife
from db.views.route_views import RouteView
from db.views.timeline import RevisionView
from domain.model.picture import symbol
from domain.model.policy import RolloutLimits, StrategySpec
from domain.model.preparation import Preparation, PreparationState
from domain.model.states import RouteStatus, TrafficStatus
from domain.replicas.health import is_answering
from domain.replicas.host_choice import BEAT_MISSED_AFTER, MISSED_AFTER
from domain.text.numbers import duration, number_of
from domain.traffic.entrances import entrances_in_words, rules_in_words
from domain.traffic.request_counts import rate
from domain.traffic.snapshot import EntranceKind
from runtime.machine.path_access import process_name, stuck_holder_of
from stack.home.folder import find_home
from stack.stack_errors import StackError


def callers_words(now: Sequence[AnsweringView]) -> Text | None:
    """A line for each revision that answers; red where requests fail; None without requests or reports."""
    lines = [
        Text(_of_revision(each, is_alone=len(now) == 1), "red" if each.failed_per_second else "")
        for each in now
        if each.per_second
    ]
    return Text("\n").join(lines) if lines else None


def losing_words(rows: Sequence[LosingView]) -> Iterator[Text]:
    """A sentence for each deployment whose callers get failures now."""
    for each in rows:
        yield Text(f"! {each.deployment} loses requests: {each.sentence}", "red")


def _of_revision(each: AnsweringView, *, is_alone: bool) -> str:
    if not each.revision:
        return f"{rate(each.failed_per_second)} requests/s found no replica"
    parts = [f"{rate(each.per_second)} requests/s"]
    for what, per_second in (("failed", each.failed_per_second), ("refused (4xx)", each.refused_per_second)):
        if per_second:
            parts.append(f"{rate(per_second)} {what} ({per_second / each.per_second:.2%})")
    if each.half_ms is not None:
        parts.append(f"first byte: half within {each.half_ms} ms")
    if each.most_ms is not None:
        parts.append(f"95 % within {each.most_ms} ms")
    words = ", ".join(parts)
    return words if is_alone else f"{each.revision}: {words}"


def certificates_in_words(view: ReachedView) -> Iterator[str]:
    """The validity of each certificate, or why there is none."""
    for certificate in view.certificates:
        until = f"until {certificate.not_after:%Y-%m-%d %H:%M} UTC" if certificate.not_after else ""
        coming = "is ordered" if certificate.is_ordered else ""
        fault = f"not renewed: {certificate.fault}" if certificate.fault and until else certificate.fault or ""
        refused = f"a proxy does not show it: {certificate.refused}" if certificate.refused else ""
        trust = "known" if certificate.is_of_authorities and not fault else ""
        text = "; ".join(filter(None, (until, coming, fault, refused, certificate.doubt, trust)))
        yield f"{certificate.title}: {text or 'nobody has looked yet'}"
    yield from hosts_without(view.certificates, view.hosts)


def reached_in_words(view: ReachedView, envoy: str) -> str:
    """http://web.localhost:8080/, http://127.0.0.1:8080/web/; hosts web, web.localhost."""
    urls = view.urls(envoy)
    hosts = [entrance for entrance in view.entrances if entrance.kind is EntranceKind.HOST]
    if not urls:
        return entrances_in_words(view.entrances, view.rules)
    by_host = f" (or with the host {entrances_in_words(hosts)})" if hosts else ""
    return f"{', '.join(urls)}{by_host}{rules_in_words(view.rules)}"


def silent_parts(signs: SignsOfLife) -> Iterator[str]:
    """Warnings about silent parts, about a fleet without workers, and about replicas under the workers' account."""
    if sentence := signs.missing_worker:
        yield sentence
    elif signs.beat is not None and signs.now - signs.beat > BEAT_MISSED_AFTER:
        since = duration(signs.now - signs.beat)
        yield f"no tick of beat has reached a worker for {since}: what waits for a time waits; do beat and Redis run?"
    if signs.api is not None and signs.now - signs.api > MISSED_AFTER:
        since = duration(signs.now - signs.api)
        yield f"the server for proxies (api) has been silent for {since}: proxies keep what they know"
    yield from missing_walls(signs)


def missing_walls(signs: SignsOfLife) -> Iterator[str]:
    """A sentence when replicas run under the workers' account, with what prevents another on this machine."""
    if sentence := signs.missing_wall:
        from stack.parts.replica_accounts import advice  # noqa: PLC0415 -- only where it is missing, and others shall start fast

        way = ""
        with suppress(StackError):  # its files belong to another user
            way = advice(find_home(os.environ))
        yield f"{sentence}; here {way}" if way else sentence


def held_up() -> Iterator[str]:
    """A sentence where a process of this machine holds up all starts and stops of replicas here."""
    with suppress(StackError):  # its files belong to another user
        lock = find_home(os.environ).replicas_lock
        if pid := stuck_holder_of(lock):
            holder = process_name(pid)
            yield f"{holder} holds {lock}: no replica of this host is started or stopped until it lets go or ends"


def waits_for_person(view: DeploymentView) -> str:
    """The command that a person must type before the rollout continues; empty when it waits for nobody."""
    return f"waits for you: rollway {view.waits_for} {view.name}" if view.waits_for else ""


def warn_of_missing_worker(reader: Reader, console: Console) -> None:
    """Warn after a command that it is stored and waits for a worker. Nothing is printed where `console` is quiet."""
    if sentence := signs_of_life(reader).missing_worker:
        printer(stderr=True, quiet=console.quiet).print(f"note: {sentence}", style="yellow")


def warn_of_doubts(reader: Reader, names: Iterable[str], console: Console) -> None:
    """Warn after activations of rollouts whose judge gets too little from proxies, or may err more often."""
    from domain.cycle.evaluator import EVALUATOR  # noqa: PLC0415 -- after activations only, and status shall start fast

    for name in names:
        view = deployment_named(reader, name)
        rollout = view.rollout
        if rollout is None or not rollout.spec.get("judge"):
            continue
        gaps = signs_of_life(reader).missing_evidence
        policy = rollout.snapshot.policy
        sentences = EVALUATOR.strategy_of(policy).cautions(policy.spec, view.desired_replicas, is_plan=False)
        for sentence in filter(None, (gaps, *sentences)):
            printer(stderr=True, quiet=console.quiet).print(f"note: {name}: {sentence}", style="yellow")


def warn_of_hosts_passed_over(results: Iterable[Mapping[str, Any]], console: Console) -> None:
    """Warn after an activation of hosts that start no replicas of the revision, since they lack a secret."""
    for result in results:
        for host, lacks in result.get("passed_over", {}).items():
            note = f"note: host {host} gets no replicas of {result['revision']}: it lacks {lacks}"
            printer(stderr=True, quiet=console.quiet).print(note, style="yellow")


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
    return _COLOURS.get(status, "dim")


def deployments_table(views: Iterable[DeploymentView]) -> Table:
    table = columns("NAME", "STATE", "HEALTHY", "REVISION", "REPLICAS", "WHY")
    for view in views:
        healthy = sum(route.is_serving for route in view.routes)
        picture = view.picture
        table.add_row(
            view.name,
            _state(view),
            f"{healthy}/{view.desired_replicas}",
            _revision(view),
            picture,
            Text(view.said, "dim"),
        )
    return table


def deployment_page(
    view: DeploymentView,
    revisions: Sequence[RevisionView],
    failed: RouteView | None,
    addresses: str,
    more: Mapping[str, Text],
    callers: Text | None = None,
) -> RenderableType:
    """Everything about a deployment. `addresses`: in words. `more`: facts about its rollout, or the last one.

    `callers`: the answers that callers get, where they are known.
    """
    facts = columns("", "")
    facts.show_header = False
    for name, words in _facts(view, revisions, failed, addresses, more):
        facts.add_row(Text(name, "dim"), words)
        if name == "replicas" and callers is not None:
            facts.add_row(Text("callers", "dim"), callers)
    head = Text.assemble((view.name, "bold"), "  ", _state(view), f" for {duration(view.now - view.phase_started_at)}")
    return Group(head, facts, Text(), routes_table(view.routes, view)) if view.routes else Group(head, facts)


def routes_table(routes: Iterable[RouteView], view: DeploymentView) -> Table:
    table = columns("ROUTE", "REVISION", "STATUS", "HOST", "ADDRESS", "SINCE", "WHY")
    for route in routes:
        idle = ", no traffic" if route.is_active and route.traffic is TrafficStatus.INACTIVE else ""
        answering = ", but answering" if is_answering(route) else ""
        state = f"{symbol(route.status, route.traffic) or '·'} {route.status}{answering}{idle}"
        table.add_row(
            short_id(route.id),
            route.revision,
            Text(state, route_colour(route.status)),
            route.host or "-",
            route.address or "-",
            roughly(view.now - route.status_changed_at),
            Text("" if route.status is RouteStatus.HEALTHY else f"{route.reason}{_under_way(route, view.now)}", "dim"),
        )
    return table


def _under_way(route: RouteView, now: datetime) -> str:
    """Whether nothing has begun after the drain did."""
    if not route.answers_under_way or route.drain_started_at is None:
        return ""
    answers = number_of(route.answers_under_way, "answer")
    return f"; {answers} under way for {duration(now - route.drain_started_at)} or longer"


def _facts(
    view: DeploymentView,
    revisions: Sequence[RevisionView],
    failed: RouteView | None,
    addresses: str,
    more: Mapping[str, Text],
) -> Iterable[tuple[str, str | Text]]:
    picture = view.picture
    yield "replicas", f"{picture}  {_counts(view)}".strip()
    if late := view.overdue:
        yield "late", Text(late, "yellow")
    if view.maintenance:
        yield "callers get", Text(view.maintenance, "yellow")
    if why := view.why:
        is_under_way = view.standing.tone in ("moves", "warn", "bad")
        yield "why", f"{why} ('rollway why {view.name}' says more)" if is_under_way else why
    if any(each.state is not PreparationState.DONE for each in view.preparations):
        yield "hosts", "; ".join(map(_preparation, view.preparations))
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
    yield "reached", addresses
    if failed is not None:
        whose = f"{failed.revision} on {failed.host}" if failed.host else failed.revision
        when = ago(failed.status_changed_at, view.now)
        words = f"{failed.reason} ({whose}, {when}; rollway logs {short_id(failed.id)})"
        yield "last failed", Text(words, "red")


def _preparation(each: Preparation) -> str:
    """E.g. "gpu-2 running for 12 s: 43 % of 14 GB"."""
    took = f" for {duration(timedelta(seconds=each.seconds))}" if each.seconds is not None else ""
    how = took if each.state is PreparationState.RUNNING else took.replace("for", "after")
    return f"{each.host} {each.state}{how}{f': {each.words}' if each.words else ''}"


def policy_words(policy: dict[str, Any] | None) -> str:
    """rolling_update: max_surge 1, max_unavailable 1; timeout_seconds 300.

    Settings of every policy, `count_stopping` and the limits, are left out where they have their defaults.
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
    """1, 5%, (errors (allowed 1%), at_least (requests 60)), 5% → 50%: empty settings are left out."""
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
    """The revision, and for an hour the one that the last rollout did not get to."""
    back = f", {view.rolled_back.revision} rolled back" if view.rolled_back else ""
    return f"{view.runs or '-'}{back}"


def _counts(view: DeploymentView) -> str:
    by_status = Counter(route.status for route in view.routes)
    counts = ", ".join(f"{count} {status}" for status in RouteStatus if (count := by_status[status]))
    return f"{view.desired_replicas} wanted, {counts or 'none running'}"


def _rollout(view: DeploymentView) -> str:
    rollout = view.rollout
    if rollout is None:
        return "none"
    allowed = RolloutLimits.model_validate(rollout.limits).failures_allowed(view.desired_replicas)
    why = f' ("{rollout.reason}")' if rollout.reason else ""
    start = f"by {rollout.actor}{why}, started {ago(rollout.started_at, view.now)}"
    failures = f"{rollout.failed_routes} of {allowed} failures"
    if rollout.back_reason:
        return f"{start}; {failures}; turned back, without a deadline: {rollout.back_reason}"
    clock = "timeout paused" if rollout.clock_stopped_at else _time_left(rollout.deadline - view.now)
    return f"{start}; {clock}; {failures}"


def _time_left(remaining: timedelta) -> str:
    return f"{duration(remaining)} left" if remaining > timedelta() else f"deadline passed {duration(remaining)} ago"


def _names(view: DeploymentView, revisions: Sequence[RevisionView]) -> str:
    if not revisions:
        return "none; 'rollway apply' adds one"
    names = [revision.name for revision in revisions[:_SHOWN_REVISIONS]]
    more = ", ..." if len(revisions) > _SHOWN_REVISIONS else ""
    return f"{', '.join(names)}{more} (newest first; current: {view.current_revision or 'none'})"
