"""The reads of what PUT sets, as it answers: policy, autoscaling rules, where a deployment is reached."""

from psycopg import Connection

from api.people.asking.asked import Asked
from api.people.reads.deployments import Document, named
from db.cycle.rules import rules_of
from db.views.fleet.entrances import reached_at
from domain.model.autoscaling import NO_AUTOSCALING


def policy(connection: Connection, asked: Asked) -> Document:
    """How a deployment is rolled out; null: its replicas are just replaced."""
    view = named(connection, asked)
    return {"deployment": view.name, "version": view.version, "policy": view.policy}


def autoscaling(connection: Connection, asked: Asked) -> Document:
    """The autoscaling rules of a deployment, the first of which that fires wins."""
    view = named(connection, asked)
    found = rules_of(connection, [view.id]).get(view.id, NO_AUTOSCALING)
    rules = [rule.model_dump(mode="json") for rule in found.rules]
    return {"deployment": view.name, "version": view.version, "rules": rules}


def traffic(connection: Connection, asked: Asked) -> Document:
    """Where a deployment is reached, and what proxies do with its requests."""
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
    }
