"""Each thing that should not last, planted in a sound fleet, is told by doctor."""

import json
from dataclasses import dataclass
from typing import LiteralString

import pytest
from sqlalchemy import Engine

from cli.terminal.exits import ExitCode
from tests.cli.conftest import Rollway
from tests.support.rows.deployments import ask, write

pytestmark = [pytest.mark.usefixtures("servers"), pytest.mark.decides_wrongly]


@dataclass(frozen=True)
class Planted:
    statement: LiteralString
    says: str
    exit: ExitCode = ExitCode.REFUSED
    questions: int = 1


PLANTED = [
    Planted(
        "UPDATE routes SET address = 'here:20001' WHERE deployment_id = (SELECT id FROM deployments"
        " WHERE name = 'web')",
        "on here have one address, here:20001",
    ),
    Planted("UPDATE routes SET address = '127.0.0.1:1'", "✗ api and web: replicas "),
    Planted(
        "UPDATE routes SET host = 'nowhere' WHERE deployment_id = (SELECT id FROM deployments WHERE name = 'web')",
        "✗ web: 3 replicas are on host nowhere, which nobody knows",
    ),
    Planted(
        "UPDATE receipts SET text = replace(text, 'completed', 'rolled_back') WHERE number = 2",
        "✗ web: receipt 2 was changed after it was sealed",
    ),
    Planted("DELETE FROM receipts WHERE number = 2", "✗ web: receipt 2 is gone, and receipt 3 is not", questions=2),
    Planted("DELETE FROM receipts WHERE number = 3", "and has no receipt"),
    Planted(
        "INSERT INTO hosts (name, address, last_seen_at, down_since)"
        " VALUES ('old', '10.0.0.1', now() - interval '7 days', now() - interval '7 days')",
        "✗ host old has been silent for 7 d",
    ),
    Planted(
        "INSERT INTO hosts (name, address, replica_user, unasked_since, deaf_since)"
        " VALUES ('west', '10.0.0.1', 'nobody', now() - interval '7 hours', now() - interval '7 hours')",
        "✗ host west reaches PostgreSQL, and has not been answered by Redis for 7 h",
    ),
    Planted(
        "UPDATE hosts SET clock_offset_seconds = 300", "✗ the clock of host here is 300 s ahead of that of Postgre"
    ),
    Planted("UPDATE hosts SET clock_offset_seconds = -61", "✗ the clock of host here is 61 s behind that of Postgre"),
    Planted(
        "UPDATE deployments SET due_at = '2099-01-01T00:00Z' WHERE name = 'web'",
        "✗ web: it is looked at again at 2099-01-01 00:00:00 UTC: in more than a year",
    ),
    Planted("UPDATE rollouts SET started_at = now() - interval '60 days'", "has been open for 60 days", ExitCode.DONE),
    Planted(
        "UPDATE outbox SET at = now() - interval '7 days'",
        "✗ pager: 1 events are older than it waits for, the oldest of ",
    ),
    Planted(
        "INSERT INTO commands (request_id, name, payload, actor, created_at)"
        " VALUES ('old', 'x', '{}', 'ann', now() - interval '9 days')",
        "1 request ids should have been cut more than 1 days ago",
        ExitCode.DONE,
    ),
    Planted(
        "INSERT INTO routes (deployment_id, revision_id, status, traffic_status, status_reason, created_at, stopped_at)"
        " SELECT deployment_id, id, 'terminated', 'inactive', 'seen', at, at FROM revisions,"
        " (SELECT now() - interval '9 days' + n * interval '1 second' AS at FROM generate_series(1, 60) n) made"
        " WHERE name = 'v1'",
        "the past of 2 deployments should have been cut more than 1 days ago",
        ExitCode.DONE,
    ),
    Planted(
        """UPDATE revisions SET spec = jsonb_set(spec, '{command}', '["sleep", "61"]') WHERE name LIKE 'web-%%'""",
        "looks named by its content, whose name is web-",
        ExitCode.DONE,
    ),
    Planted(
        "UPDATE deployments SET history_id = gen_random_uuid() WHERE name = 'web'",
        "✗ web: the last record of its history is gone",
    ),
]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.says)
def test_what_should_not_last_is_told(rollway: Rollway, healthy_installation: Engine, planted: Planted) -> None:
    write(healthy_installation, planted.statement)
    said = rollway("doctor")
    assert (said.code, planted.says in said.out) == (planted.exit, True), said.out
    found = [row["found"] for row in json.loads(rollway("doctor", "--json").out)["asked"] if row["found"]]
    assert len(found) == planted.questions


SOUND: list[LiteralString] = [
    "UPDATE routes SET address = 'here:1', status_changed_at = now()",
    "UPDATE routes SET address = 'here:1', host = 'external'",
    "UPDATE routes SET host = 'nowhere', stopped_at = now()",
    "UPDATE hosts SET last_seen_at = now() - interval '23 hours', down_since = now() - interval '23 hours'",
    "UPDATE hosts SET clock_offset_seconds = 59",
    "UPDATE hosts SET clock_offset_seconds = 300, down_since = now()",
    "UPDATE deployments SET due_at = now() + interval '300 days'",
    "UPDATE rollouts SET started_at = now() - interval '29 days'",
    "UPDATE outbox SET at = now() - interval '24.5 hours'",
    "UPDATE outbox SET at = now() - interval '7 days', given_up_at = now(), why = 'it answered 500'",
    "UPDATE commands SET created_at = now() - interval '7.5 days'",
    "UPDATE revisions SET name = 'web-1' WHERE name LIKE 'web-%%'",
    "WITH young AS (UPDATE rollouts SET ended_at = now() WHERE ended_at IS NOT NULL) DELETE FROM receipts",
]
"""Near to a fault, and none."""


@pytest.mark.parametrize("statement", SOUND)
def test_what_is_within_bounds_is_no_fault(
    rollway: Rollway, healthy_installation: Engine, statement: LiteralString
) -> None:
    write(healthy_installation, statement)
    told = json.loads(rollway("doctor", "--json").out)
    assert {row["question"] for row in told["asked"] if row["found"]} <= {
        "Has every subscription been told of its events?"
    }


def test_replicas_on_a_host_that_nobody_knows_are_ended_with_it(rollway: Rollway, healthy_installation: Engine) -> None:
    write(
        healthy_installation,
        "UPDATE routes SET host = 'nowhere' WHERE id IN (SELECT id FROM routes ORDER BY id LIMIT 2)",
    )
    ask(healthy_installation, "forget_host", host="nowhere")
    assert "nowhere" not in rollway("doctor").out


def test_what_nobody_looks_at_is_looked_at_when_it_is_scaled(rollway: Rollway, healthy_installation: Engine) -> None:
    write(healthy_installation, "UPDATE deployments SET due_at = '2099-01-01' WHERE name = 'web'")
    assert rollway("doctor").code == ExitCode.REFUSED
    ask(healthy_installation, "scale", deployment="web", desired_replicas=3)
    assert rollway("doctor").code == ExitCode.DONE
