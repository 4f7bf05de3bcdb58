"""The reads of rollouts, and of the settings behind PUT."""

from dataclasses import asdict, replace
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import structlog
from psycopg import Connection
from redis.exceptions import RedisError

from api.people.reads.deployment_reads import Document, view_of
from api.people.reads.read_table import Shape
from api.people.requests import Parameters, ReadRequest, StepParameters
from db.audit.explanations import ReceiptView, receipt_shown
from db.audit.receipts import AgainstPlan, against_plan
from db.cycle.autoscaling_rules import rules_of_one
from db.proxies.traffic_reader import read_traffic
from db.views.fleet_settings import SubscriptionView
from db.views.fleet_views import reached_at
from db.views.planning_views import Cycle, LearnedView, learned_shown
from db.views.planning_views import cycles as cycles_of_step
from db.views.rollout_records import EvidenceView, evidence_shown
from db.views.rollout_views import RolloutView, rollout_of_id
from db.views.timeline import StepView, steps_of
from domain.commands.results import PolicySet, RulesSet, TrafficSet
from domain.text.errors import InvalidInputError, RolloutNotFoundError
from tasks.task_settings import KEY_PREFIX
from tasks.worker.connections import redis_client
from traffic.routing_table import TrafficTable, derive_table

Drawn = Annotated[Document, Shape((Cycle,), "whole", {"step_no": int, "at": datetime, "verdict": str})]


def rollout(connection: Connection, request: ReadRequest[Parameters]) -> Annotated[Document, Shape((RolloutView,))]:
    """One, of a deployment that the token is for."""
    return asdict(_visible_rollout(connection, request))


def steps(
    connection: Connection, request: ReadRequest[StepParameters]
) -> Annotated[Document, Shape((StepView,), "whole")]:
    """The steps of a rollout, in order."""
    return {"items": steps_of(connection, _visible_rollout(connection, request).id, request.parameters.after)}


def cycles(connection: Connection, request: ReadRequest[StepParameters]) -> Drawn:
    """The steps drawn as pictures, with what each did and why."""
    view = _visible_rollout(connection, request)
    items = [
        {"step_no": step.step_no, "at": step.at, "verdict": step.verdict, **asdict(cycle)}
        for step in steps_of(connection, view.id, request.parameters.after)
        for cycle in cycles_of_step(step)
    ]
    return {"items": items}


def rollout_plan(
    connection: Connection, request: ReadRequest[Parameters]
) -> Annotated[Document, Shape((AgainstPlan,))]:
    """A rollout held against the plan of its beginning."""
    return asdict(against_plan(connection, _visible_rollout(connection, request).id))


def evidence(connection: Connection, request: ReadRequest[Parameters]) -> Annotated[Document, Shape((EvidenceView,))]:
    """How the evidence of a rollout's judge came to be, a point now and then."""
    return asdict(evidence_shown(connection, _visible_rollout(connection, request)))


def learned(connection: Connection, request: ReadRequest[Parameters]) -> Annotated[Document, Shape((LearnedView,))]:
    """Show what past replicas teach, in seconds: with it a client makes plans of its own."""
    return asdict(learned_shown(connection, view_of(connection, request)))


def receipt(connection: Connection, request: ReadRequest[Parameters]) -> Annotated[Document, Shape((ReceiptView,))]:
    """The receipt of a rollout, of a deployment that the token is for; it outlives the rollout."""
    view = receipt_shown(connection, rollout_id(request))
    if not request.token.sees(view.receipt["deployment"]):
        raise RolloutNotFoundError(f"the token {request.token.name} sees no rollout {request.path['rollout']}")
    return asdict(view)


def last_receipt(
    connection: Connection, request: ReadRequest[Parameters]
) -> Annotated[Document, Shape((ReceiptView,))]:
    """The receipt of the last rollout of a deployment."""
    return asdict(receipt_shown(connection, request.deployment))


def _visible_rollout(connection: Connection, request: ReadRequest[Parameters]) -> RolloutView:
    view = rollout_of_id(connection, rollout_id(request))
    if not request.token.sees(view.deployment):
        raise RolloutNotFoundError(f"the token {request.token.name} sees no rollout {view.id}")
    return view


def rollout_id(request: ReadRequest[Parameters]) -> UUID:
    """The id in the path. Raises InvalidInputError."""
    try:
        return UUID(request.path["rollout"])
    except ValueError:
        raise InvalidInputError("rollout: must be the id of a rollout", field="rollout") from None


_log = structlog.get_logger(__name__)


def with_queues(
    _request: ReadRequest[Any], document: dict[str, list[SubscriptionView]]
) -> dict[str, list[SubscriptionView]]:
    """Each subscription with its queue's length; without it while Redis is away."""
    views = document["items"]
    if not any(view.queue for view in views):
        return document
    try:
        client = redis_client()
        return {"items": [_with_queue(view, client.llen(f"{KEY_PREFIX}{view.queue}")) for view in views]}
    except RedisError as error:
        _log.warning("Redis does not say what lies in queues", error=str(error).partition("\n")[0])
        return document


def _with_queue(view: SubscriptionView, queued: int) -> SubscriptionView:
    return replace(view, queued=queued) if view.queue else view


def policy(connection: Connection, request: ReadRequest[Parameters]) -> Annotated[Document, Shape((PolicySet,))]:
    """Show how a deployment is rolled out; null: its replicas are just replaced."""
    view = view_of(connection, request)
    return {"deployment": view.name, "version": view.version, "policy": view.policy}


def autoscaling(connection: Connection, request: ReadRequest[Parameters]) -> Annotated[Document, Shape((RulesSet,))]:
    """The autoscaling rules of a deployment, the first of which that fires wins."""
    view = view_of(connection, request)
    rules = [rule.model_dump(mode="json") for rule in rules_of_one(connection, view.id)]
    return {"deployment": view.name, "version": view.version, "rules": rules}


def traffic(connection: Connection, request: ReadRequest[Parameters]) -> Annotated[Document, Shape((TrafficSet,))]:
    """Shows where a deployment is reached, and what proxies do with its requests."""
    view = view_of(connection, request)
    settings = reached_at(connection, view.id)
    return {
        "deployment": view.name,
        "version": view.version,
        "entrances": settings.entrances,
        "request_timeout_seconds": settings.rules.timeout_seconds,
        "idle_timeout_seconds": settings.rules.idle_timeout_seconds,
        "hedge_after_seconds": settings.rules.hedge_after_seconds,
        "preview": settings.rules.preview,
        "protocol": settings.rules.protocol,
        "tls": settings.rules.tls,
        "hold_seconds": settings.rules.hold_seconds,
        "hold_callers": settings.rules.hold_callers,
        "slow_start_seconds": settings.rules.slow_start_seconds,
        "max_body_bytes": settings.rules.max_body_bytes,
        "max_requests_per_second": settings.rules.max_requests_per_second,
        "upstream_tls": settings.rules.upstream_tls,
        "sticky": settings.rules.sticky,
        "pages": dict(settings.rules.pages) or None,
    }


def traffic_table(
    connection: Connection, request: ReadRequest[Parameters]
) -> Annotated[Document, Shape((TrafficTable,))]:
    """The deployments of the token, as proxies see them; a token for all deployments also sees what is left out.

    What is secret is not shown: what they have for TLS, and what a header must say to get through a maintenance.
    """
    table = derive_table(read_traffic(connection))
    services = [service.public for service in table.services if request.token.sees(service.name)]
    return {**asdict(table), "services": services, "faults": table.faults if request.token.is_for_all else ()}
