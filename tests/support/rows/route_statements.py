"""Statements that change routes, lawful and not, and what Postgres says of them."""

from collections.abc import Sequence
from typing import Any, LiteralString

import psycopg
from psycopg import Connection

from tests.support.rows.deployments import Made

CEILING, FLOOR = "RW001", "RW002"
CONSTRAINTS = {CEILING: "routes_within_ceiling", FLOOR: "routes_above_floor"}
CREATE = """
    INSERT INTO routes (deployment_id, revision_id, traffic_status)
    SELECT %(id)s, %(v2)s, 'active' FROM generate_series(1, %(count)s)
"""
CREATE_PARKED = """
    INSERT INTO routes (deployment_id, revision_id, traffic_status, status, started_at, parked_until)
    SELECT %(id)s, %(v2)s, 'inactive', 'healthy', now(), now() FROM generate_series(1, %(count)s)
"""
CREATE_GONE = """
    INSERT INTO routes (deployment_id, revision_id, traffic_status, status, stopped_at)
    SELECT %(id)s, %(v2)s, 'inactive', 'terminated', now() FROM generate_series(1, %(count)s)
"""
DRAIN = """
    UPDATE routes SET status = 'terminating', traffic_status = 'inactive', drain_started_at = now()
     WHERE id = ANY(%(ids)s)
"""
STOP_AT_ONCE = """
    UPDATE routes SET status = 'terminated', traffic_status = 'inactive', stopped_at = now() WHERE id = ANY(%(ids)s)
"""
PARK = "UPDATE routes SET traffic_status = 'inactive', parked_until = now() WHERE id = ANY(%(ids)s)"
LEAVE_TRAFFIC = "UPDATE routes SET traffic_status = 'inactive' WHERE id = ANY(%(ids)s)"
FALL_ILL = "UPDATE routes SET status = 'unhealthy', started_at = now() WHERE id = ANY(%(ids)s)"
FAIL = (
    "UPDATE routes SET status = 'failed', traffic_status = 'inactive', status_reason = 'exit 1' WHERE id = ANY(%(ids)s)"
)
RECOVER = "UPDATE routes SET status = 'healthy', traffic_status = 'active', started_at = now() WHERE id = ANY(%(ids)s)"


def code_of(connection: Connection, statement: LiteralString, made: Made, of: int | Sequence[int]) -> str | None:
    """The code with which Postgres refuses the statement, if it does; the transaction can go on."""
    places = [of] if isinstance(of, int) else of
    parameters: dict[str, Any] = {"id": made.id, "v2": made.v2, "count": places[0] if places else 0}
    if "%(ids)s" in statement:
        parameters["ids"] = [made.routes[place] for place in places]
    try:
        with connection.transaction():
            connection.execute(statement, parameters)
    except psycopg.DatabaseError as refused:
        if refused.diag.constraint_name != CONSTRAINTS.get(str(refused.sqlstate)):
            raise
        return refused.sqlstate
    return None
