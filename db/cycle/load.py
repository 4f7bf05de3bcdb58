"""Loads what claimed deployments are decided from besides their rows: routes, and the rules of the ready ones."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from psycopg import Connection

from db.connection.arrays import UUIDS
from db.cycle.claim import Claimed
from db.cycle.rules import rules_of
from db.evidence import evidence_of
from db.locking.statuses import IS_MISPLACED, PRESENT
from domain.autoscaling.rule import NO_AUTOSCALING
from domain.cycle.rollout import is_judged, with_evidence
from domain.model.deployment import Deployment, Route
from domain.model.states import Lifecycle, RouteStatus, TrafficStatus
from domain.text.errors import UnreadableError

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
    asked = connection.cursor(binary=True).execute(_ROUTES, {"ids": UUIDS([each.row.id for each in claimed])})
    ready = [each.row.id for each in claimed if each.row.lifecycle == Lifecycle.READY]
    rules = rules_of(connection, ready) if ready else {}
    routes = _routes(asked.fetchall())
    loaded = [
        each.deployment(routes.get(each.row.id.int, ()), rules.get(each.row.id, NO_AUTOSCALING)) for each in claimed
    ]
    return tuple(_with_evidence(connection, loaded))


def load_routes(connection: Connection, claimed: Sequence[Claimed]) -> tuple[Deployment, ...]:
    """The snapshots with their routes, without rules and evidence: what people steer by. Raises UnreadableError too."""
    asked = connection.cursor(binary=True).execute(_ROUTES, {"ids": UUIDS([each.row.id for each in claimed])})
    routes = _routes(asked.fetchall())
    return tuple(each.deployment(routes.get(each.row.id.int, ())) for each in claimed)


def load_what_is_readable(connection: Connection, claimed: Sequence[Claimed]) -> tuple[Deployment, ...]:
    """Load deployments; what their rows alone say where a newer release wrote the rest."""
    try:
        return load(connection, claimed)
    except UnreadableError:
        return tuple([each.deployment() for each in claimed])


def _with_evidence(connection: Connection, loaded: Sequence[Deployment]) -> Sequence[Deployment]:
    """Deployments whose rollouts are judged get what their judges have seen."""
    judged = [each.rollout.id for each in loaded if each.rollout is not None and is_judged(each.rollout)]
    if not judged:
        return loaded
    evidence = evidence_of(connection, judged)
    return [
        replace(each, rollout=with_evidence(each.rollout, evidence.get(each.rollout.id))) if each.rollout else each
        for each in loaded
    ]


def _routes(rows: Iterable[tuple[Any, ...]]) -> dict[int, list[Route]]:
    """By the number of their deployment's id: numbers are found faster than ids."""
    routes: dict[int, list[Route]] = defaultdict(list)
    try:
        for deployment_id, route_id, revision_id, status, traffic, *rest in rows:
            routes[deployment_id.int].append(Route(route_id, revision_id, _HEALTH[status], _TRAFFIC[traffic], *rest))
    except KeyError as error:
        raise UnreadableError.of("status of a replica", error.args[0]) from error
    return routes
