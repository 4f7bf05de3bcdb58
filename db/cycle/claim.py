"""Claims lock deployments for a cycle and read their rows: those that are marked, or those that are off.

A transaction that takes a place in a group locks the group's row until it ends, so the last place is not given twice.
Of the claimed deployments those that a glance does not settle are loaded: with routes, rules and evidence.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection

from db.connection.arrays import UUIDS, named_row
from db.connection.transactions import database_now
from db.cycle.autoscaling_rules import rules_of
from db.cycle.snapshots import (
    DEPLOYMENTS,
    ROLLOUTS,
    DeploymentRow,
    RolloutRow,
    deployment_of,
    policy_of,
    rollout_of,
)
from db.devices import demands_of, ledger_with_room, read_ledger
from db.fleet_gates import GROUP_OF, gates_of
from db.judge_evidence import evidence_of
from db.locking.row_locks import IN_ID_ORDER, SKIPPING_HELD, mark_unheld
from db.locking.statuses import ACTIVE, IS_MISPLACED, PRESENT, WELL, known_status, lifecycle_status
from db.preparations import begin_preparations, preparations_of
from domain.autoscaling.rule import NO_AUTOSCALING, AutoscalingState
from domain.cycle.rollout import is_judged, most_at_once, with_evidence
from domain.cycle.transitions import Glimpse
from domain.cycle.writes import HistoryHead
from domain.devices.ledger import Demand, Ledger, device_room
from domain.model.deployment import Deployment, Hold, Rollout, Route, RouteCounts
from domain.model.states import PREPARING, DeploymentLifecycleStatus, Lifecycle, RouteStatus, TrafficStatus
from domain.steering.gates import Gate, OpenRollout
from domain.strategies.in_place import with_devices
from domain.text.errors import UnreadableError

_LOCK_GROUPS = f"SELECT FROM deployment_groups WHERE name IN ({GROUP_OF}) ORDER BY name FOR UPDATE"


class GoingForward(NamedTuple):
    """A locked deployment, its rollout, and whether a person let that through freezes."""

    row: DeploymentRow
    rollout: Rollout
    through_freeze: bool

    @property
    def may_be_held(self) -> bool:
        """Whether gates may hold it: not on the way back, and not while it is paused."""
        status = lifecycle_status(self.row.lifecycle, self.row.sub_step)
        return status.goes_forward and self.row.paused_at is None and not self.rollout.is_undo

    @property
    def open_rollout(self) -> OpenRollout:
        """The rollout as its group sees it."""
        rollout = self.rollout
        return OpenRollout(
            rollout.id,
            self.row.name,
            rollout.started_at,
            has_moved=rollout.steps > 0,
            through_freeze=self.through_freeze,
        )


class Gates(NamedTuple):
    """The gates that may hold locked deployments, by the id of each."""

    by_deployment: Mapping[UUID, tuple[OpenRollout, Gate]]

    def holds(self, now: datetime) -> dict[UUID, Hold]:
        holds = ((key, gate.hold(rollout, now)) for key, (rollout, gate) in self.by_deployment.items())
        return {key: hold for key, hold in holds if hold is not None}


def read_gates(connection: Connection, locked: Iterable[GoingForward]) -> Gates:
    """Read the gates of deployments in a rollout: three statements at most, however many they are."""
    forward = [each for each in locked if each.may_be_held]
    if not forward:
        return Gates({})
    asking = [each.row.name for each in forward if not each.rollout.steps]
    if asking:
        connection.execute(_LOCK_GROUPS, (asking,))
    gates = gates_of(connection, [each.row.name for each in forward])
    return Gates({each.row.id: (each.open_rollout, gates[each.row.name]) for each in forward})


_CLAIM = f"""
    {DEPLOYMENTS}
     WHERE d.due_at <= statement_timestamp()
       AND (d.lifecycle, coalesce(d.sub_step, '')) IN
           (SELECT * FROM unnest(%(lifecycles)s::text[], %(sub_steps)s::text[]))
     ORDER BY d.due_at
     LIMIT %(limit)s
    {SKIPPING_HELD}
"""

_CLAIM_THESE = f"{DEPLOYMENTS} WHERE d.id = ANY(%(ids)b) {IN_ID_ORDER}"

_BESIDE = "SELECT clock_timestamp(), EXISTS (SELECT FROM subscriptions), uuidv7(), EXISTS (SELECT FROM wishes)"

_CLAIM_NAMED = f"{DEPLOYMENTS} WHERE d.name = %(name)s AND d.lifecycle <> 'destroyed' {IN_ID_ORDER}"


class Claimed(NamedTuple):
    """A locked deployment without its routes: its row, and the row of its rollout.

    `hold`: why its rollout may not go forward now.
    """

    row: DeploymentRow
    rollout: RolloutRow | None
    hold: Hold | None = None

    @property
    def status(self) -> DeploymentLifecycleStatus | None:
        """The place of it in its life; None where this release does not know that."""
        return known_status(self.row.lifecycle, self.row.sub_step)

    def deployment(self, routes: Iterable[Route] = (), autoscaling: AutoscalingState = NO_AUTOSCALING) -> Deployment:
        """Make the snapshot with these routes and rules."""
        rollout = rollout_of(self.rollout) if self.rollout else None
        snapshot = deployment_of(self.row, rollout, routes, autoscaling)
        return replace(snapshot, hold=self.hold) if self.hold else snapshot

    def glimpse(self) -> Glimpse | None:
        """The numbers for a glance; None if no new replica is starting, since a glance cannot decide then."""
        row, rollout = self.row, self.rollout
        if rollout is None or not rollout.starting:
            return None
        stands = bool(row.paused_at or self.hold or rollout.clock_stopped_at or rollout.unanswered)
        counts = RouteCounts(rollout.starting, rollout.healthy, rollout.idle)
        return Glimpse(rollout, policy_of(rollout), row.desired_replicas, counts, stands)


@dataclass(frozen=True, slots=True)
class Claim:
    """Locked deployments, the database's time after the locks were taken, and whether anybody subscribed to events.

    `next_id`: for a rollout that may begin; they sort by time. `has_pending_commands`: whether some wait.
    """

    deployments: tuple[Claimed, ...]
    now: datetime
    has_subscribers: bool
    next_id: UUID
    has_pending_commands: bool

    @property
    def ids(self) -> list[UUID]:
        return [claimed.row.id for claimed in self.deployments]

    @property
    def waiting_for_person(self) -> frozenset[UUID]:
        """The deployments whose last look waits for a person."""
        return frozenset(claimed.row.id for claimed in self.deployments if claimed.row.waits_for)

    @property
    def has_sticky_callers(self) -> list[UUID]:
        """The deployments whose callers stay with a replica."""
        return [claimed.row.id for claimed in self.deployments if claimed.row.has_seats]

    @property
    def late(self) -> float:
        """The seconds since the first of the deployments was due."""
        waited = (self.now - claimed.row.due_at for claimed in self.deployments if claimed.row.due_at is not None)
        return max((seconds.total_seconds() for seconds in waited), default=0.0)

    @property
    def heads(self) -> dict[UUID, HistoryHead]:
        """The last history record of each deployment, by its id."""
        return {
            claimed.row.id: HistoryHead(claimed.row.history_id, claimed.row.history_key) for claimed in self.deployments
        }


def claim_due(connection: Connection, targets: Iterable[DeploymentLifecycleStatus], limit: int) -> Claim:
    """Claim up to `limit` marked deployments of these statuses, without those that another worker holds."""
    return _claim(connection, _CLAIM, {**as_columns(targets), "limit": limit})


def claim_these(connection: Connection, ids: Iterable[UUID]) -> Claim:
    """Claim these deployments; waits for transactions that hold them."""
    return _claim(connection, _CLAIM_THESE, {"ids": list(ids)})


def claim_named(connection: Connection, name: str) -> Claim:
    """Claim the live deployment of that name, if there is one; waits for a transaction that holds it."""
    return _claim(connection, _CLAIM_NAMED, {"name": name})


def as_columns(statuses: Iterable[DeploymentLifecycleStatus]) -> dict[str, list[str]]:
    """Statuses as their two columns store them, no sub-step as an empty one."""
    pairs = [(status.lifecycle.value, status.sub_step.value if status.sub_step else "") for status in statuses]
    return {"lifecycles": [lifecycle for lifecycle, _ in pairs], "sub_steps": [sub_step for _, sub_step in pairs]}


def _claim(connection: Connection, query: str, parameters: dict[str, Any]) -> Claim:
    cursor = connection.cursor(binary=True, row_factory=named_row(DeploymentRow))
    cursor.execute(query, parameters)
    facts = connection.execute(_BESIDE)
    rows = cursor.fetchall()
    ((now, has_subscribers, next_id, has_pending_commands),) = facts.fetchall()
    rollout_cursor = connection.cursor(binary=True, row_factory=named_row(RolloutRow))
    ids = [row.rollout_id for row in rows if row.rollout_id]
    # all of them at once: row by row takes longer
    rollouts = rollout_cursor.execute(ROLLOUTS, {"ids": UUIDS(ids)}).fetchall() if ids else []
    by_id = {row.id.int: row for row in rollouts}  # numbers are found faster than ids
    holds: Mapping[UUID, Hold] = {}
    if any(row.may_be_held for row in by_id.values()):
        gates = read_gates(connection, _going_forward(rows, by_id))
        now = database_now(connection)  # after the locks of groups
        holds = gates.holds(now)
    claimed = [
        Claimed(row, by_id[row.rollout_id.int] if row.rollout_id else None, holds.get(row.id) if holds else None)
        for row in rows
    ]
    return Claim(tuple(claimed), now, has_subscribers, next_id, has_pending_commands)


def _going_forward(rows: Iterable[DeploymentRow], rollouts: Mapping[int, RolloutRow]) -> Iterator[GoingForward]:
    for row in rows:
        if row.rollout_id is not None:
            rollout = rollouts[row.rollout_id.int]
            yield GoingForward(row, rollout_of(rollout), rollout.through_freeze)


# Off is what `domain.handlers.check_replica.drift` finds to be so, and sick replicas before their grace has ended.
# The two columns are not compared as pairs: Postgres would count every deployment's routes before it looks at the
# status. Pairs that are mixed here, such as scaling/provisioning, are in no row: a CHECK refuses them.
_IS_OFF = f"""
    d.lifecycle = ANY(%(lifecycles)s) AND coalesce(d.sub_step, '') = ANY(%(sub_steps)s)
    AND (d.lifecycle <> 'ready'
         OR ((d.retry_at IS NULL OR d.retry_at <= clock_timestamp())
             AND (d.degraded_reason IS NOT NULL
                  OR EXISTS (
                      SELECT FROM (
                          SELECT count(*) AS active,
                                 count(*) FILTER (WHERE r.revision_id = d.current_revision_id
                                                    AND r.{WELL}
                                                    AND r.traffic_status = 'active'
                                                    AND NOT {IS_MISPLACED}) AS right
                            FROM routes r
                           WHERE r.deployment_id = d.id AND r.{ACTIVE}
                             AND (r.revision_id = d.current_revision_id OR r.parked_until IS NULL
                                  OR r.parked_until <= clock_timestamp() OR {IS_MISPLACED})
                      ) counted
                      WHERE counted.active <> d.desired_replicas OR counted.right <> d.desired_replicas))))
"""


def mark_what_is_off(connection: Connection, targets: Iterable[DeploymentLifecycleStatus]) -> frozenset[UUID]:
    """Mark deployments of these statuses; of the ready ones only those whose routes are not what they should be."""
    return mark_unheld(connection, _IS_OFF, as_columns(targets))


_ROUTES = f"""
    SELECT deployment_id, id, revision_id, status, traffic_status, created_at, status_changed_at, parked_until,
           {IS_MISPLACED}, kept_until
      FROM routes r
     WHERE deployment_id = ANY(%(ids)b) AND {PRESENT}
     ORDER BY id
"""

Load = Callable[[Connection, Sequence[Claimed]], tuple[Deployment, ...]]

_HEALTH = {status.value: status for status in RouteStatus}
_TRAFFIC = {status.value: status for status in TrafficStatus}


def load(connection: Connection, claimed: Sequence[Claimed]) -> tuple[Deployment, ...]:
    """The snapshots that decisions are made from, in the order of `claimed`: three statements at most.

    Raises UnreadableError when one of them has a route or a rule that only a newer release understands.
    """
    if not claimed:
        return ()
    cursor = connection.cursor(binary=True).execute(_ROUTES, {"ids": UUIDS([each.row.id for each in claimed])})
    ready = [each.row.id for each in claimed if each.row.lifecycle == Lifecycle.READY]
    rules = rules_of(connection, ready) if ready else {}
    routes = _routes(cursor.fetchall())
    loaded = [
        each.deployment(routes.get(each.row.id.int, ()), rules.get(each.row.id, NO_AUTOSCALING)) for each in claimed
    ]
    evidenced = _with_evidence(connection, loaded)
    return _with_devices(connection, claimed, _with_preparations(connection, evidenced))


def load_routes(connection: Connection, claimed: Sequence[Claimed]) -> tuple[Deployment, ...]:
    """The snapshots with their routes, without rules and evidence: what people steer by. Raises UnreadableError too."""
    cursor = connection.cursor(binary=True).execute(_ROUTES, {"ids": UUIDS([each.row.id for each in claimed])})
    routes = _routes(cursor.fetchall())
    loaded = [each.deployment(routes.get(each.row.id.int, ())) for each in claimed]
    return _with_devices(connection, claimed, loaded)


def load_what_is_readable(connection: Connection, claimed: Sequence[Claimed]) -> tuple[Deployment, ...]:
    """Load deployments; what their rows alone say where a newer release wrote the rest."""
    try:
        return load(connection, claimed)
    except UnreadableError:
        return tuple([each.deployment() for each in claimed])


def _with_evidence(connection: Connection, loaded: Sequence[Deployment]) -> Sequence[Deployment]:
    """Deployments whose canaries are judged get what their judges have seen."""
    canaries = [each.rollout for each in loaded if each.rollout is not None and each.rollout.canary is not None]
    rollout_ids = [rollout.id for rollout in canaries if is_judged(rollout)]
    if not rollout_ids:
        return loaded
    evidence = evidence_of(connection, rollout_ids)
    return [
        replace(each, rollout=with_evidence(each.rollout, evidence.get(each.rollout.id))) if each.rollout else each
        for each in loaded
    ]


def ask_hosts_to_prepare(connection: Connection, claimed: Sequence[Claimed]) -> None:
    """Begin with the hosts of what is preparing, unless it is paused, or held, or wants no replica."""
    preparing = [each for each in claimed if each.status == PREPARING and each.row.desired_replicas]
    if ids := [each.row.id for each in preparing if not each.hold and not each.row.paused_at]:
        begin_preparations(connection, ids)


def _with_preparations(connection: Connection, loaded: Sequence[Deployment]) -> Sequence[Deployment]:
    """Deployments that are preparing get how far their hosts are."""
    ids = [each.id for each in loaded if each.status == PREPARING]
    if not ids:
        return loaded
    preparations = preparations_of(connection, ids)
    return [replace(each, preparations=preparations.get(each.id, ())) if each.id in ids else each for each in loaded]


def _with_devices(
    connection: Connection, claimed: Iterable[Claimed], loaded: Sequence[Deployment]
) -> tuple[Deployment, ...]:
    """Deployments of which a revision needs devices get the room that there is for them."""
    needy = {each.row.id for each in claimed if each.row.has_needs}
    if not needy:
        return tuple(loaded)
    revisions = {each.id: (each.deploying_revision_id, each.current_revision_id) for each in loaded if each.id in needy}
    parked = {route.revision_id for each in loaded if each.id in needy for route in each.routes if route.parked_until}
    demands = demands_of(connection, {id_ for pair in revisions.values() for id_ in pair if id_} | parked)
    ledger, now = _ledger(connection, [each for each in loaded if each.id in needy], demands), database_now(connection)
    sleepers = tuple(id_ for id_, demand in demands.items() if demand.sleeps)
    return tuple(
        _with_room(ledger, {id_: demands[id_] for id_ in revisions[each.id] if id_ in demands}, sleepers, each, now)
        if each.id in needy
        else each
        for each in loaded
    )


def _ledger(connection: Connection, needy: Sequence[Deployment], demands: Mapping[UUID, Demand]) -> Ledger:
    """The ledger of few hosts, where these deployments find room there for all that they may create."""
    wanted: Counter[UUID] = Counter()
    for each in needy:
        if any(route.parked_until for route in each.routes):  # what one that sleeps has lent may be anywhere
            return read_ledger(connection)
        most = most_at_once(each)
        both = (each.deploying_revision_id, each.current_revision_id)
        wanted |= Counter({id_: most for id_ in both if id_ and id_ in demands})
    return ledger_with_room(connection, [(demands[id_], count) for id_, count in wanted.items()])


def _with_room(
    ledger: Ledger, demands: Mapping[UUID, Demand], sleepers: tuple[UUID, ...], deployment: Deployment, now: datetime
) -> Deployment:
    """The deployment with its room; as it was while none of its two revisions needs devices."""
    if not demands:
        return deployment
    target = deployment.deploying_revision_id or deployment.current_revision_id
    live = {route.id: route.revision_id for route in deployment.active_routes}
    room = device_room(ledger, demands, deployment.desired_replicas, live, target, now)
    own = {route.revision_id for route in deployment.routes}
    return with_devices(deployment, replace(room, sleepers=tuple(id_ for id_ in sleepers if id_ in own)))


def _routes(rows: Iterable[tuple[Any, ...]]) -> dict[int, list[Route]]:
    """The routes by the number of their deployment's id: numbers are found faster than ids."""
    routes: dict[int, list[Route]] = defaultdict(list)
    try:
        for deployment_id, route_id, revision_id, status, traffic, *rest in rows:
            routes[deployment_id.int].append(Route(route_id, revision_id, _HEALTH[status], _TRAFFIC[traffic], *rest))
    except KeyError as error:
        raise UnreadableError.of("status of a replica", error.args[0]) from error
    return routes
