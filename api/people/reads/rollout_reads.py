"""The reads of rollouts, and of what PUT sets."""

from dataclasses import asdict, replace
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import structlog
from psycopg import Connection
from redis.exceptions import RedisError

from api.people.reads.deployment_reads import Document, named
from api.people.reads.read_table import Shape
from api.people.requests import Asked, Parameters, StepParameters
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


def rollout(connection: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((RolloutView,))]:
    """One, of a deployment that the token is for."""
    return asdict(_seen(connection, asked))


def steps(connection: Connection, asked: Asked[StepParameters]) -> Annotated[Document, Shape((StepView,), "whole")]:
    """The steps of a rollout, in order."""
    return {"items": steps_of(connection, _seen(connection, asked).id, asked.parameters.after)}


def cycles(connection: Connection, asked: Asked[StepParameters]) -> Drawn:
    """The steps drawn as pictures, with what each did and why."""
    found = _seen(connection, asked)
    drawn = [
        {"step_no": step.step_no, "at": step.at, "verdict": step.verdict, **asdict(cycle)}
        for step in steps_of(connection, found.id, asked.parameters.after)
        for cycle in cycles_of_step(step)
    ]
    return {"items": drawn}


def rollout_plan(connection: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((AgainstPlan,))]:
    """A rollout held against the plan of its beginning."""
    return asdict(against_plan(connection, _seen(connection, asked).id))


def evidence(connection: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((EvidenceView,))]:
    """How the evidence of a rollout's judge came to be, a point now and then."""
    return asdict(evidence_shown(connection, _seen(connection, asked)))


def learned(connection: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((LearnedView,))]:
    """Show what past replicas teach, in seconds: with it a client makes plans of its own."""
    return asdict(learned_shown(connection, named(connection, asked)))


def receipt(connection: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((ReceiptView,))]:
    """The receipt of a rollout, of a deployment that the token is for; it outlives the rollout."""
    found = receipt_shown(connection, rollout_id(asked))
    if not asked.token.sees(found.receipt["deployment"]):
        raise RolloutNotFoundError(f"the token {asked.token.name} sees no rollout {asked.path['rollout']}")
    return asdict(found)


def last_receipt(connection: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((ReceiptView,))]:
    """The receipt of the last rollout of a deployment."""
    return asdict(receipt_shown(connection, asked.deployment))


def _seen(connection: Connection, asked: Asked[Parameters]) -> RolloutView:
    found = rollout_of_id(connection, rollout_id(asked))
    if not asked.token.sees(found.deployment):
        raise RolloutNotFoundError(f"the token {asked.token.name} sees no rollout {found.id}")
    return found


def rollout_id(asked: Asked[Parameters]) -> UUID:
    """The one in the path. Raises InvalidInputError."""
    try:
        return UUID(asked.path["rollout"])
    except ValueError:
        raise InvalidInputError("rollout: must be the id of a rollout", field="rollout") from None


_log = structlog.get_logger(__name__)


def with_queues(_asked: Asked[Any], found: dict[str, list[SubscriptionView]]) -> dict[str, list[SubscriptionView]]:
    """Each subscription with its queue's length; without it while Redis is away."""
    views = found["items"]
    if not any(view.queue for view in views):
        return found
    try:
        client = redis_client()
        return {"items": [_with_queue(view, client.llen(f"{KEY_PREFIX}{view.queue}")) for view in views]}
    except RedisError as error:
        _log.warning("Redis does not say what lies in queues", error=str(error).partition("\n")[0])
        return found


def _with_queue(view: SubscriptionView, queued: int) -> SubscriptionView:
    return replace(view, queued=queued) if view.queue else view


def policy(connection: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((PolicySet,))]:
    """Show how a deployment is rolled out; null: its replicas are just replaced."""
    view = named(connection, asked)
    return {"deployment": view.name, "version": view.version, "policy": view.policy}


def autoscaling(connection: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((RulesSet,))]:
    """The autoscaling rules of a deployment, the first of which that fires wins."""
    view = named(connection, asked)
    rules = [rule.model_dump(mode="json") for rule in rules_of_one(connection, view.id)]
    return {"deployment": view.name, "version": view.version, "rules": rules}


def traffic(connection: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((TrafficSet,))]:
    """Shows where a deployment is reached, and what proxies do with its requests."""
    view = named(connection, asked)
    reached = reached_at(connection, view.id)
    return {
        "deployment": view.name,
        "version": view.version,
        "entrances": reached.entrances,
        "request_timeout_seconds": reached.rules.timeout_seconds,
        "idle_timeout_seconds": reached.rules.idle_timeout_seconds,
        "hedge_after_seconds": reached.rules.hedge_after_seconds,
        "preview": reached.rules.preview,
        "protocol": reached.rules.protocol,
        "tls": reached.rules.tls,
        "hold_seconds": reached.rules.hold_seconds,
        "hold_callers": reached.rules.hold_callers,
        "max_body_bytes": reached.rules.max_body_bytes,
        "max_requests_per_second": reached.rules.max_requests_per_second,
        "upstream_tls": reached.rules.upstream_tls,
        "sticky": reached.rules.sticky,
        "pages": dict(reached.rules.pages) or None,
    }


def traffic_table(connection: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((TrafficTable,))]:
    """The deployments that the token is for, as proxies are told of them; to who sees all, with what is left out.

    What is secret is not shown: what they have for TLS, and what a header must say to get through a maintenance.
    """
    found = derive_table(read_traffic(connection))
    seen = [service.shown for service in found.services if asked.token.sees(service.name)]
    return {**asdict(found), "services": seen, "faults": found.faults if asked.token.is_for_all else ()}
