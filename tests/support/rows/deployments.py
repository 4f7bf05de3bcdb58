"""Deployments written straight into Postgres, drawn as pictures: `make_deployment(engine, "■■|◇")`.

Left of the bar runs v1, right of it v2. While deploying v1 is current; otherwise v2 is, or v1 when there is no bar.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID, uuid4

from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from sqlalchemy import Engine

from db.commands.execute import CommandResult, execute
from db.connection.transactions import in_transaction, transaction
from db.cycle.claim import claim_these, load
from db.replicas.reports import RouteReport, apply_reports
from domain.commands.registry import parse_command
from domain.cycle.rollout import guard_of
from domain.model.deployment import Deployment, Route
from domain.model.picture import picture
from domain.model.states import DeploymentLifecycleStatus, Lifecycle, RouteStatus, TrafficStatus
from domain.strategies.builtin import parse_policy
from tests.support.pictures.pictures import READY, routes_of
from tests.support.pictures.pictures import deploying as deploying_picture

ROLLING: Mapping[str, Any] = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 1}}
SPEC: Mapping[str, Any] = {"command": ["sleep", "60"]}
HERE = "here"
"""The worker host that all replicas of a picture are placed on, but for ▣ and ◈."""
EMPTIED = "emptied"
"""The host of those, which nobody has drained yet."""
NOBODY = "redis://127.0.0.1:1/0"
"""A Redis that nobody runs: what is given it must not need it."""


@dataclass(frozen=True, slots=True)
class Made:
    """The ids of what was made; `v1` and `v2` are its revisions, `routes` those of the picture from left to right."""

    id: UUID
    name: str
    v1: UUID
    v2: UUID
    rollout_id: UUID | None
    routes: tuple[UUID, ...]


def make_deployment(
    engine: Engine,
    drawn_as: str = "■■■",
    *,
    name: str = "web",
    n: int = 3,
    status: DeploymentLifecycleStatus = READY,
    policy: Mapping[str, Any] | None = ROLLING,
    spec: Mapping[str, Any] = SPEC,
    status_for: float = 3600,
) -> Made:
    """A marked deployment in this state; its replicas have had theirs for `status_for` seconds."""
    deploying = status.lifecycle is Lifecycle.DEPLOYING
    with transaction(engine) as connection:
        made = _id(connection, "INSERT INTO deployments (name, desired_replicas) VALUES (%s, %s)", name, n)
        v1, v2 = (_revision(connection, made, revision, spec) for revision in ("v1", "v2"))
        if policy is not None:
            _set_policy(connection, made, policy)
        rollout = _rollout(connection, made, v1, v2, n, policy) if deploying else None
        left, right = (v1, v2) if "|" in drawn_as else (v2, v1)
        routes = _routes(connection, made, routes_of(drawn_as, left, right), status_for)
        current = None if status.lifecycle is Lifecycle.PENDING else v1 if deploying else right
        sub_step = status.sub_step.value if status.sub_step else None
        connection.execute(
            """
            UPDATE deployments SET lifecycle = %s, sub_step = %s, current_revision_id = %s, deploying_revision_id = %s,
                                   rollout_id = %s, due_at = now()
             WHERE id = %s
            """,
            (status.lifecycle.value, sub_step, current, v2 if deploying else None, rollout, made),
        )
    return Made(made, name, v1, v2, rollout, routes)


def complete(engine: Engine, made: Made) -> None:
    """Its rollout is completed, just now."""
    write(engine, "UPDATE rollouts SET outcome = 'completed', ended_at = clock_timestamp()")
    write(
        engine,
        "UPDATE deployments SET lifecycle = 'ready', sub_step = NULL, rollout_id = NULL, deploying_revision_id = NULL, "
        "current_revision_id = %s",
        made.v2,
    )


def _revision(connection: Connection, deployment_id: UUID, name: str, spec: Mapping[str, Any]) -> UUID:
    query: LiteralString = "INSERT INTO revisions (deployment_id, name, spec) VALUES (%s, %s, %s)"
    return _id(connection, query, deployment_id, name, Jsonb(dict(spec)))


def _stored(policy: Mapping[str, Any] | None) -> tuple[str, Jsonb, Jsonb]:
    parsed = parse_policy(policy).as_json()
    return parsed["strategy"], Jsonb(parsed["spec"]), Jsonb(parsed["limits"])


def _set_policy(connection: Connection, deployment_id: UUID, policy: Mapping[str, Any]) -> None:
    query = "INSERT INTO policies (deployment_id, strategy, spec, limits) VALUES (%s, %s, %s, %s)"
    connection.execute(query, (deployment_id, *_stored(policy)))
    spec = parse_policy(policy).spec
    rest = "UPDATE deployments SET count_stopping = %s, may_surge = %s WHERE id = %s"
    connection.execute(rest, (spec.count_stopping, spec.may_surge, deployment_id))


def _rollout(
    connection: Connection, deployment_id: UUID, v1: UUID, v2: UUID, n: int, policy: Mapping[str, Any] | None
) -> UUID:
    guard = guard_of(deploying_picture("", n, policy=parse_policy(policy)))
    query: LiteralString = """
        INSERT INTO rollouts (deployment_id, from_revision_id, to_revision_id, strategy, spec, limits,
                              desired_at_start, ceiling, floor, count_stopping, actor, reason, deadline)
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, 'test', '', now() + interval '30 minutes')
    """
    limits = (guard.ceiling, guard.keep, guard.count_stopping)
    return _id(connection, query, deployment_id, v1, v2, *_stored(policy), n, *limits)


def _routes(
    connection: Connection, deployment_id: UUID, routes: Iterable[Route], status_for: float
) -> tuple[UUID, ...]:
    query: LiteralString = """
        INSERT INTO routes (deployment_id, revision_id, host, status, traffic_status, started_at, address,
                            status_reason, drain_started_at, created_at, status_changed_at)
        SELECT %s, %s, %s, u.status, %s, CASE WHEN u.status <> 'provisioning' THEN u.at END,
               CASE WHEN u.status <> 'provisioning' THEN '127.0.0.1:1' END, 'drawn',
               CASE WHEN u.status IN ('terminating', 'terminated') THEN u.at END,
               u.at - interval '1 day' + %s * interval '1 second', u.at
          FROM (VALUES (%s, now() - %s * interval '1 second')) AS u (status, at)
    """
    connection.execute("SET LOCAL session_replication_role = replica")  # a picture may show what no guard lets in
    rows = [
        (
            route.revision_id,
            EMPTIED if route.is_misplaced else HERE,
            _traffic(route).value,
            number,
            route.status.value,
            status_for,
        )
        for number, route in enumerate(routes)
    ]
    ids = tuple(_id(connection, query, deployment_id, *row) for row in rows)
    connection.execute("SET LOCAL session_replication_role = origin")
    return ids


def _traffic(route: Route) -> TrafficStatus:
    """What leaves or is gone is not in traffic."""
    return route.traffic if route.is_active else TrafficStatus.INACTIVE


def _id(connection: Connection, query: LiteralString, *parameters: object) -> UUID:
    (found,) = connection.execute(f"{query} RETURNING id", parameters).fetchone() or (None,)
    assert isinstance(found, UUID)
    return found


def ask(engine: Engine, task: str, **payload: object) -> CommandResult:
    """A command as a service would send it, with an id of its own unless one is given; its answer is as documented."""
    command = parse_command(f"rollway.{task}", {"request_id": str(uuid4()), **payload})
    done = execute(engine, command)
    command.answer.model_validate(done.result)
    return done


def read(engine: Engine, query: LiteralString, *parameters: object) -> list[dict[str, Any]]:
    """The rows of a query, asked again when its connection is cut."""
    return in_transaction(
        engine, lambda connection: connection.cursor(row_factory=dict_row).execute(query, parameters).fetchall()
    )


def write(engine: Engine, query: LiteralString, *parameters: object) -> None:
    """One statement in a transaction of its own."""
    with transaction(engine) as connection:
        connection.execute(query, parameters)


def snapshot(engine: Engine, deployment_id: UUID) -> Deployment:
    """As the handlers see it."""
    with transaction(engine) as connection:
        (deployment,) = load(connection, claim_these(connection, [deployment_id]).deployments)
    return deployment


def drawn(engine: Engine, deployment_id: UUID) -> str:
    """Its replicas as a picture, without those on their way out."""
    seen = snapshot(engine, deployment_id)
    return picture(seen.routes, seen.current_revision_id, seen.deploying_revision_id)


def mark(engine: Engine, *ids: UUID) -> None:
    """As time would: whatever these deployments wait for, they are looked at now."""
    write(engine, "UPDATE deployments SET due_at = clock_timestamp() WHERE id = ANY(%s)", list(ids))


def become(engine: Engine, status: RouteStatus, *ids: UUID) -> None:
    """The world: these routes' replicas are found to be so."""
    rows = read(engine, "SELECT id, deployment_id, status FROM routes WHERE id = ANY(%s) ORDER BY id", list(ids))
    reports = [
        RouteReport(row["id"], row["deployment_id"], RouteStatus(row["status"]), status, reason="seen", address="h:1")
        for row in rows
    ]
    in_transaction(engine, lambda connection: apply_reports(connection, reports))


def start_all(engine: Engine) -> None:
    """The world: every ◇ becomes ■."""
    provisioning = read(engine, "SELECT id FROM routes WHERE status = 'provisioning'")
    become(engine, RouteStatus.HEALTHY, *(row["id"] for row in provisioning))
