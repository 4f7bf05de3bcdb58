"""Reads for plans, replays, and explanations of a wait."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, NamedTuple, Self
from uuid import UUID

from psycopg import Connection

from db.connection.arrays import named_row
from db.devices import read_ledger
from db.fleet_gates import gates_of
from db.judge_evidence import evidence_of
from db.locking.statuses import IS_LACKED, lifecycle_status, start_failures
from db.views.deployment_view import DeploymentView
from db.views.deployment_views import deployment_named
from db.views.fleet_views import SignsOfLife, signs_of_life
from db.views.rollout_views import RolloutView, rollouts_by_id
from db.views.route_views import failing_start
from db.views.timeline import RevisionAhead, RevisionView, StepView
from db.views.unplaced import why_without_host
from domain.cycle.effects import routes_after
from domain.cycle.recording import changes_from_json, inputs_from_json
from domain.cycle.rollout import is_judged, wait_in_words, with_evidence
from domain.devices.ledger import Demand
from domain.devices.room import DeviceRoom
from domain.model.canary import Sums
from domain.model.decision import RouteChanges
from domain.model.deployment import Deployment, Hold, Route, StartFailures
from domain.model.picture import picture
from domain.model.preparation import Preparation, PreparationState
from domain.model.states import Verdict
from domain.planning.plan_input import HostsAhead, Planned, Subject, WaitContext, after_activation, says_when_healthy
from domain.planning.replica_timings import Timings
from domain.revisions.host_labels import has_labels
from domain.steering.activation import ActivationRequest
from domain.steering.device_check import DeviceCase, NoDevicesError
from domain.steering.gates import OpenRollout
from domain.strategies.builtin import stored_policy
from domain.text.errors import RevisionNotFoundError, RolloutNotFoundError, RollwayError
from domain.traffic.wire import known_wire


@dataclass(frozen=True, slots=True)
class Cycle:
    """A cycle of a rollout: the picture that it saw, what it did in a few words, and why.

    `active` counts the replicas that the budget counts, `serving` the healthy ones in traffic.
    """

    picture: str
    did: str
    why: str
    active: int
    serving: int


def cycles(step: StepView) -> list[Cycle]:
    """A step's own cycle; after one that created replicas also the wait for them, drawn as it left them."""
    before, at = inputs_from_json(step.inputs)
    changes = changes_from_json(step.decision)
    own = cycle_of(before, _did(changes, step), step.decision["reason"])
    if not changes.created:
        return [own]
    after = replace(before, routes=routes_after(before.routes, changes, at))
    wait = wait_in_words(after, at)
    return [own, cycle_of(after, "wait", wait)] if wait else [own]


def cycle_of(deployment: Deployment | DeploymentView, did: str, why: str) -> Cycle:
    routes = deployment.routes
    drawing = picture(routes, deployment.current_revision_id, deployment.deploying_revision_id)
    return Cycle(drawing, did, why, sum(route.is_active for route in routes), sum(route.is_serving for route in routes))


def _did(changes: RouteChanges, step: StepView) -> str:
    parts = []
    if changes.created:
        parts.append(f"create {changes.created}")
    if changes.promote_route_ids:
        parts.append(f"promote {len(changes.promote_route_ids)}")
    if changes.drain_route_ids:
        parts.append(f"drain {len(changes.drain_route_ids)}")
    match step.decision["revision"]:
        case "swap":
            parts.append("completed, swap, ready")
        case "clear":
            parts.append("back where it was, ready")
    if step.verdict in (Verdict.EXPIRED, Verdict.GIVE_UP, Verdict.ERROR):
        parts.append(f"{step.verdict.replace('_', ' ')}: {step.decision['reason'].partition('; last:')[0]}")
    return ", ".join(parts)


_REMEMBERED = 300
"""The number of newest replicas to learn from: older ones say little of today's revisions and machines."""

_REPLICAS = """
    SELECT array_agg(extract(epoch FROM healthy_at - created_at)::float8 ORDER BY created_at)
             FILTER (WHERE healthy_at IS NOT NULL) AS starts,
           array_agg(extract(epoch FROM stopped_at - drain_started_at)::float8 ORDER BY created_at)
             FILTER (WHERE status = 'terminated' AND stopped_at >= drain_started_at) AS stops,
           count(*) FILTER (WHERE status = 'failed' AND healthy_at IS NULL AND came_up) AS failed,
           count(DISTINCT revision_id) FILTER (WHERE status = 'failed' AND NOT came_up) AS never_up,
           count(DISTINCT revision_id) AS revisions
      FROM (SELECT *, bool_or(healthy_at IS NOT NULL) OVER (PARTITION BY revision_id) AS came_up
              FROM (SELECT * FROM routes WHERE deployment_id = %s AND created_at < %s
                     ORDER BY created_at DESC LIMIT %s) newest) seen
"""

_WAKES = """
    SELECT extract(epoch FROM s.at - o.started_at)::float8
      FROM (SELECT * FROM rollouts WHERE deployment_id = %s AND started_at < %s ORDER BY started_at DESC LIMIT %s) o
      JOIN rollout_steps s ON s.rollout_id = o.id AND s.step_no = 1 AND s.phase <> 'deploying_preparing'
     WHERE o.outcome IS NOT NULL ORDER BY o.started_at
"""
"""The times from the command to the first decision; nothing else comes between the two."""

_PREPARATIONS = """
    SELECT extract(epoch FROM ended_at - started_at)::float8
      FROM (SELECT * FROM preparations WHERE deployment_id = %s AND started_at < %s AND state = 'done'
             ORDER BY started_at DESC LIMIT %s) newest ORDER BY started_at
"""

_TAKE_REPLICAS = """
    SELECT h.name, h.labels, h.down_since IS NULL AND h.deaf_since IS NULL AND h.drained_at IS NULL AS is_open,
           p.state IS NOT DISTINCT FROM 'done' AS is_prepared
      FROM hosts h LEFT JOIN preparations p ON p.revision_id = %s AND p.host = h.name ORDER BY h.name
"""

_FAILURES = """
    SELECT failed_revision_id, failed_starts, last_failed_at, came_up_at, short_lives FROM deployments WHERE id = %s
"""


class _Replicas(NamedTuple):
    starts: list[float] | None
    stops: list[float] | None
    failed: int
    never_up: int
    revisions: int


@dataclass(frozen=True, slots=True)
class Foreseeable:
    """A deployment as decisions see it at the database's time `now`, and what its past replicas teach."""

    deployment: Deployment
    learned: Timings
    now: datetime

    @classmethod
    def of(cls, view: DeploymentView, past: "LearnedView") -> Self:
        """The deployment of the view, with its failing starts."""
        names = [field.name for field in fields(Route)]
        routes = tuple(Route(**{name: getattr(route, name) for name in names}) for route in view.routes)
        rollout = view.snapshot.rollout
        if rollout is not None:
            rollout = with_evidence(rollout, past.evidence)
        deployment = replace(view.snapshot, start_failures=past.start_failures, routes=routes, rollout=rollout)
        return cls(deployment, past.learned, view.now)


@dataclass(frozen=True, slots=True)
class LearnedView:
    """The lessons of a deployment's replicas and its failing starts, and what proxies told of its canary."""

    learned: Timings
    start_failures: StartFailures | None
    evidence: Sums | None = None


def learned_of(connection: Connection[Any], deployment_id: UUID, before: datetime | None = None) -> Timings:
    """Read what the deployment's newest replicas and rollouts teach, or those that were there `before`."""
    parameters = (deployment_id, before or "infinity", _REMEMBERED)
    (replicas,) = connection.cursor(row_factory=named_row(_Replicas)).execute(_REPLICAS, parameters).fetchall()
    wakes = connection.execute(_WAKES, parameters).fetchall()
    preparations = connection.execute(_PREPARATIONS, parameters).fetchall()
    return Timings(
        starts=tuple(replicas.starts or ()),
        stops=tuple(replicas.stops or ()),
        wakes=tuple(max(0.0, wake) for (wake,) in wakes),
        failed_starts=replicas.failed,
        never_up=replicas.never_up,
        revisions=replicas.revisions,
        preparations=tuple(seconds for (seconds,) in preparations),
    )


def foreseeable(connection: Connection[Any], view: DeploymentView) -> Foreseeable:
    """The deployment of the view, as a plan of it begins."""
    return Foreseeable.of(view, learned_shown(connection, view))


def learned_shown(connection: Connection[Any], view: DeploymentView) -> LearnedView:
    """Read what is learned of the deployment of the view; of its canary as the next look will find it."""
    (failures,) = connection.execute(_FAILURES, (view.id,)).fetchall()
    rollout = view.snapshot.rollout
    rollout_ids = [] if rollout is None or not is_judged(rollout) else [rollout.id]
    evidence = next(iter((evidence_of(connection, rollout_ids) if rollout_ids else {}).values()), None)
    return LearnedView(learned_of(connection, view.id), start_failures(*failures), evidence)


def last_rollout_of(connection: Connection[Any], name: str) -> RolloutView:
    """The newest rollout of the deployment. Raises DeploymentNotFoundError and RolloutNotFoundError."""
    view = deployment_named(connection, name)
    query = "SELECT id FROM rollouts WHERE deployment_id = %s ORDER BY started_at DESC LIMIT 1"
    newest = connection.execute(query, (view.id,)).fetchone()
    if newest is None:
        raise RolloutNotFoundError.of_deployment(name)
    return rollouts_by_id(connection, newest)[newest[0]]


def planned_activation(view: DeploymentView, present: Foreseeable, revision: RevisionView | None, name: str) -> Planned:
    """The deployment with the revision of that name as it was found. Raises RevisionNotFoundError where it was not."""
    if revision is None:
        message = f"{view.name} has no revision {name}; 'rollway status {view.name}' lists them"
        raise RevisionNotFoundError(message, deployment=view.name, revision=name)
    policy = stored_policy(view.policy) if view.policy else None
    request = ActivationRequest(revision.id, name, view.deploying_revision, policy)
    speaks = str(known_wire(revision.wire)) if revision.speaks_otherwise else ""
    ahead = revision.ahead or RevisionAhead()
    hosts = HostsAhead(preparations=ahead.preparations)
    activated = replace(after_activation(present.deployment, request, present.now, hosts), devices=_room(revision))
    if ahead.refusal:
        raise NoDevicesError(ahead.refusal, deployment=view.name, revision=name)
    subject = Subject(activated, _is_checked(revision), speaks=speaks)
    return Planned(subject, present.learned, present.now)


def _room(revision: RevisionView) -> DeviceRoom | None:
    ahead = revision.ahead
    if ahead is None or ahead.room is None:
        return None
    return DeviceRoom({revision.id: ahead.room}, {revision.id: ahead.shortage}, ahead.turns, ahead.frees_at)


def revision_ahead(connection: Connection[Any], view: DeploymentView, revision: RevisionView) -> RevisionAhead | None:
    """Show what replicas of a revision would find on hosts, if they need devices, or hosts are prepared for them."""
    hosts = hosts_ahead(connection, revision.spec, revision.id)
    if hosts == HostsAhead():
        return None
    ahead = RevisionAhead(preparations=hosts.preparations)
    policy = stored_policy(view.policy) if view.policy else None
    request = ActivationRequest(revision.id, revision.name, view.deploying_revision, policy)
    try:
        devices = after_activation(view.snapshot, request, view.now, hosts).devices
    except NoDevicesError as refusal:
        return replace(ahead, refusal=refusal.message)
    except RollwayError:  # another one is deployed now, or the deployment is gone: that is no matter of hosts
        return ahead
    if devices is None:
        return ahead
    room, shortage = devices.free[revision.id], devices.shortage.get(revision.id, "")
    return replace(ahead, room=room, shortage=shortage, turns=devices.turns, frees_at=devices.frees_at)


def hosts_ahead(connection: Connection[Any], spec: Mapping[str, Any], revision_id: UUID | None = None) -> HostsAhead:
    """Read what a revision with this spec would find. `revision_id`: it is known, so hosts may be prepared for it."""
    needs, labels, prepares = spec.get("needs"), spec.get("hosts") or {}, spec.get("prepare") is not None
    if not needs and not prepares:
        return HostsAhead()
    rows = connection.execute(_TAKE_REPLICAS, (revision_id,)).fetchall()
    takes = [(name, *rest) for name, own, *rest in rows if has_labels(labels, name, own)]
    demand = Demand(needs, [name for name, *_ in takes] if labels else None) if needs else None
    states = {True: PreparationState.DONE, False: PreparationState.WAITING}
    return HostsAhead(
        DeviceCase(demand, read_ledger(connection)) if demand else None,
        tuple(Preparation(name, states[is_prepared]) for name, is_open, is_prepared in takes if is_open)
        if prepares
        else None,
    )


def planned_rest(present: Foreseeable, runs: RevisionView | None) -> Planned:
    """The deployment as it is. `runs`: the revision that it goes to, or else runs."""
    deployment = replace(present.deployment, devices=_room(runs)) if runs else present.deployment
    return Planned(Subject(deployment, _is_checked(runs)), present.learned, present.now)


def _is_checked(revision: RevisionView | None) -> bool:
    """Whether the revision says when it is healthy; where there is none, nothing is to be checked."""
    return revision is None or says_when_healthy(revision.spec)


_HOSTS = "SELECT name, down_since IS NOT NULL AS is_down FROM hosts"

_LACKING = f"""
    SELECT s.host, string_agg(DISTINCT s.reference || ': ' || s.fault, '; ')
      FROM revisions v JOIN host_secrets s ON {IS_LACKED} WHERE v.id = %s GROUP BY s.host
"""


_PAUSED = """
    SELECT actor, message FROM deployment_history
     WHERE deployment_id = %s AND result = 'asked' AND phase = 'pause' ORDER BY updated_at DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class WaitingView:
    """The arguments of `domain.planning.wait_explanation`, at the database's time `now`."""

    view: DeploymentView
    deployment: Deployment
    around: WaitContext
    signs: SignsOfLife
    now: datetime


def waiting(connection: Connection[Any], name: str) -> WaitingView:
    """The deployment of that name. Raises DeploymentNotFoundError."""
    view = deployment_named(connection, name)
    present = foreseeable(connection, view)
    hosts = dict(connection.execute(_HOSTS).fetchall())
    is_any_up = not all(hosts.values())
    without_host = why_without_host(connection, view.routes)
    context = WaitContext(
        hosts={
            route.id: route.host
            for route in view.routes
            if route.host is not None or not is_any_up or route.id in without_host
        },
        without_host=without_host,
        reasons={route.id: route.reason for route in view.routes},
        down=frozenset(host for host, is_down in hosts.items() if is_down),
        lacking=_lacking(connection, view),
        timings=present.learned,
        due_at=view.due_at,
        last_reason=view.reason,
        failure=_failure(connection, view, present.deployment),
        unproven=view.unproven,
        back=view.rollout.back_reason or "" if view.rollout else "",
        paused=_paused(connection, view),
    )
    deployment = replace(present.deployment, hold=_hold(connection, view))
    return WaitingView(view, deployment, context, signs_of_life(connection), view.now)


def _failure(connection: Connection[Any], view: DeploymentView, deployment: Deployment) -> str:
    """Say why the last start failed of the revision that is to come up; what another one did is over."""
    coming = view.deploying_revision_id if deployment.status.goes_forward else view.current_revision_id
    failures = deployment.start_failures
    if failures is None or failures.revision_id != coming:
        return ""
    failing = failing_start(connection, view.id, view.failed_starts)
    return failing.cause if failing else ""


def _paused(connection: Connection[Any], view: DeploymentView) -> str:
    """Say who paused its rollout."""
    row = connection.execute(_PAUSED, (view.id,)).fetchone() if view.paused_at else None
    return row[1].replace("paused", f"paused by {row[0]}", 1) if row else ""


def _hold(connection: Connection[Any], view: DeploymentView) -> Hold | None:
    """Say why its rollout may not go forward, as the next cycle will find it."""
    rollout = view.rollout
    if rollout is None or not lifecycle_status(view.lifecycle, view.sub_step).goes_forward:
        return None
    (through,) = connection.execute("SELECT through_freeze FROM rollouts WHERE id = %s", (rollout.id,)).fetchall()
    own_rollout = OpenRollout(
        rollout.id,
        view.name,
        rollout.started_at,
        has_moved=rollout.steps > 0,
        is_exit=rollout.is_undo,
        through_freeze=through[0],
    )
    return gates_of(connection, [view.name])[view.name].hold(own_rollout, view.now)


def _lacking(connection: Connection[Any], view: DeploymentView) -> dict[str, str]:
    """The secrets that hosts lack of the revision that should run, by host."""
    target = view.deploying_revision_id or view.current_revision_id
    return dict(connection.execute(_LACKING, (target,)).fetchall())
