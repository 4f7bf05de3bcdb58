"""A past in Postgres: rollouts, replicas and records that ended days ago, made and cut."""

from functools import partial
from typing import Any, LiteralString
from uuid import UUID

from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.retention import ROWS, cut_deployment, page_of_past
from domain.installation.settings import Retention
from tests.support.rows.deployments import Made, read, write

TWO = Retention(
    history_days=1,
    history_count=2,
    routes_days=1,
    routes_count=2,
    rollouts_days=1,
    rollouts_count=2,
    revisions_days=1,
    revisions_count=2,
    commands_days=1,
    destroyed_days=5,
    ended_days=2,
)
"""Two of each kind are kept, and what is younger than a day."""


_OUTCOMES = {"+": "completed", "-": "rolled_back"}


def cut(engine: Engine, retention: Retention = TWO) -> None:
    """Until nothing is left to cut; no transaction cuts more than it may."""
    page = partial(page_of_past, retention=retention, after=None)
    while ids := in_transaction(engine, page).ids:
        for deployment_id in ids:
            rows = in_transaction(engine, partial(cut_deployment, retention=retention, deployment_id=deployment_id))
            assert max(rows.values()) <= ROWS
            assert +rows


def revisions(engine: Engine, made: Made, names: str, days: float = 3) -> dict[str, UUID]:
    """Those that the deployment has, and further ones: a letter each, the first the oldest."""
    query: LiteralString = """
        INSERT INTO revisions (deployment_id, name, spec, created_at)
        SELECT %s, letter, '{}', now() - %s * interval '1 day' + nth * interval '1 second'
          FROM unnest(%s::text[]) WITH ORDINALITY AS u (letter, nth)
    """
    write(engine, query, made.id, days, list(names))
    return {
        row["name"]: row["id"]
        for row in read(engine, "SELECT name, id FROM revisions WHERE deployment_id = %s", made.id)
    }


def rollouts(engine: Engine, made: Made, drawn_as: str, days: float = 3) -> None:
    """Rollouts from the oldest to the newest, a second apart, with two steps each: "a+b" went well, "b-c" came back."""
    ids = revisions(engine, made, "".join(sorted(set(drawn_as) & set("abcdefgh"))))
    for nth, way in enumerate(drawn_as.split()):
        began, outcome, ended = tuple(way)
        write(
            engine,
            """
            WITH o AS (
                INSERT INTO rollouts (deployment_id, from_revision_id, to_revision_id, strategy, spec, limits,
                                      desired_at_start, ceiling, floor, actor, reason, started_at, ended_at, steps,
                                      outcome)
                SELECT %s, %s, %s, 'recreate', '{}', '{}', 3, 3, 0, 'ann', '', at, at, 2, %s
                  FROM (SELECT now() - %s * interval '1 day' + %s * interval '1 second' AS at) u
                RETURNING id)
            INSERT INTO rollout_steps (rollout_id, step_no, phase, at, verdict, inputs, decision)
            SELECT o.id, n, 'x', now(), 'success', '{}', '{}' FROM o, generate_series(1, 2) n
            """,
            *(made.id, ids[began], ids[ended], _OUTCOMES[outcome], days, nth),
        )


def drawn(engine: Engine, deployment_id: UUID) -> str:
    """The rollouts that are there."""
    query: LiteralString = """
        SELECT f.name || CASE outcome WHEN 'completed' THEN '+' ELSE '-' END || t.name AS way
          FROM rollouts o JOIN revisions f ON f.id = from_revision_id JOIN revisions t ON t.id = to_revision_id
         WHERE o.deployment_id = %s ORDER BY started_at
    """
    return " ".join(row["way"] for row in read(engine, query, deployment_id))


def how_many(engine: Engine, table: LiteralString) -> int:
    ((count,),) = [tuple(row.values()) for row in read(engine, "SELECT count(*) FROM " + table)]
    return int(count)


def gone_routes(engine: Engine, made: Made, count: int, days: float = 3, **values: Any) -> None:
    """Replicas of v2 that ended so long ago."""
    given = {"status": "terminated", "rollout": None, "stopped": True} | values
    write(
        engine,
        """
        INSERT INTO routes (deployment_id, revision_id, rollout_id, status, traffic_status, status_reason, created_at,
                            stopped_at)
        SELECT %s, %s, %s, %s, 'inactive', 'seen', at, CASE WHEN %s THEN at END
          FROM (SELECT now() - %s * interval '1 day' + n * interval '1 second' AS at FROM generate_series(1, %s) n) u
        """,
        *(made.id, made.v2, given["rollout"], given["status"], given["stopped"], days, count),
    )


def records(engine: Engine, made: Made, count: int, days: float = 3, rollout_id: UUID | None = None) -> None:
    """Records of the timeline."""
    write(
        engine,
        """
        INSERT INTO deployment_history (deployment_id, rollout_id, phase, result, target, actor, message, updated_at)
        SELECT %s, %s, 'x', 'success', 'ready', 'ann', 'seen', now() - %s * interval '1 day' + n * interval '1 second'
          FROM generate_series(1, %s) n
        """,
        *(made.id, rollout_id, days, count),
    )
