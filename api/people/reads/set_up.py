"""The reads of what PUT sets, as it answers: policy, autoscaling rules, where a deployment is reached."""

from dataclasses import asdict
from typing import Annotated

from psycopg import Connection

from api.people.asking.asked import Asked, Parameters
from api.people.reads.deployments import Document, named
from api.people.reads.table import Shape
from db.cycle.rules import rules_of_one
from db.proxies.table import read_traffic
from db.views.fleet.entrances import reached_at
from domain.commands.answers import PolicySet, RulesSet
from domain.commands.reached import TrafficSet
from traffic.derived import derive_table
from traffic.table import TrafficTable


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
