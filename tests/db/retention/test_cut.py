"""What is cut of the past, what never is, and that whoever works on a deployment is not waited for."""

import re
from typing import LiteralString

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction, transaction
from db.locking.row_locks import lock
from db.retention import ROWS, CutPage, cut_deployment, cut_fleet_rows, page_of_past
from tests.support.pictures.pictures import DESTROYED, PROVISIONING
from tests.support.rows.deployments import Made, ask, make_deployment, read, write
from tests.support.rows.past import TWO, cut, drawn, gone_routes, how_many, records, revisions, rollouts

pytestmark = pytest.mark.decides_wrongly


@pytest.fixture
def web(engine: Engine) -> Made:
    """A deployment at rest; the revision v1 is current, v2 is another."""
    return make_deployment(engine, "■■■")


def test_rollouts_that_a_way_back_needs_are_kept(engine: Engine) -> None:
    #   rollouts                  current  kept
    table = """
        a+b b+c c+d d+e           e        b+c c+d d+e             the newest ones, and how one came to the first
        a+b b-c b-d b-e           b        a+b b-d b-e             the last one that led to the current revision
        a-b a+c c+a a-d a-d       a        a+c c+a a-d a-d         what came back leads nowhere
        a+b b+c c-b c-d c-e       c        a+b b+c c-b c-d c-e     that what one would go back to came back
        a+b b-c b+d d+e e+f f-g   f        b+d d+e e+f f-g         the last one, which may be retried
        a+b b+c c+d d+e e+f       b        a+b c+d d+e e+f         the current revision was set without a rollout
        a+b b+c                   c        a+b b+c                 as few as are kept
    """
    rows = [re.split(" {2,}", row.strip()) for row in table.strip().splitlines()]
    ids = {}
    for number, (ways, current, _, _) in enumerate(rows):
        made = make_deployment(engine, "", n=0, name=f"web-{number}")
        rollouts(engine, made, ways)
        ids[ways] = made.id
        query: LiteralString = """
            UPDATE deployments d SET current_revision_id = v.id
              FROM revisions v WHERE v.deployment_id = d.id AND d.id = %s AND v.name = %s
        """
        write(engine, query, made.id, current)
    cut(engine)
    assert {ways: drawn(engine, ids[ways]) for ways, *_ in rows} == {ways: kept for ways, _, kept, _ in rows}
    assert how_many(engine, "rollout_steps") == 2 * how_many(engine, "rollouts")


def test_what_is_younger_than_its_days_is_kept(engine: Engine, web: Made) -> None:
    rollouts(engine, web, "a+b b+c c+d d+e", days=0.9)
    gone_routes(engine, web, 5, days=0.9)
    records(engine, web, 5, days=0.9)
    cut(engine)
    assert drawn(engine, web.id) == "a+b b+c c+d d+e"
    assert (how_many(engine, "routes"), how_many(engine, "deployment_history")) == (3 + 5, 5)


def test_replicas_that_are_gone_are_cut_in_small_transactions(engine: Engine, web: Made) -> None:
    gone_routes(engine, web, ROWS + 20)
    records(engine, web, ROWS + 20)
    cut(engine)
    assert how_many(engine, "routes WHERE stopped_at IS NOT NULL") == 2
    assert how_many(engine, "routes") == 3 + 2
    assert how_many(engine, "deployment_history") == 2


def test_a_replica_that_was_never_seen_to_stop_is_kept(engine: Engine, web: Made) -> None:
    gone_routes(engine, web, 4, status="failed", stopped=False)
    gone_routes(engine, web, 4, status="failed")
    given_up = make_deployment(engine, "", name="given-up", status=DESTROYED)
    gone_routes(engine, given_up, 2, status="failed", stopped=False)
    write(engine, "UPDATE deployments SET phase_started_at = now() - interval '9 days' WHERE id = %s", given_up.id)
    cut(engine)
    assert how_many(engine, "routes WHERE status = 'failed' AND stopped_at IS NULL") == 4 + 2


def test_what_belongs_to_an_open_rollout_is_kept(engine: Engine) -> None:
    made = make_deployment(engine, "■■■|", status=PROVISIONING)
    write(engine, "UPDATE rollouts SET started_at = now() - interval '9 days'")
    gone_routes(engine, made, 4, rollout=made.rollout_id)
    records(engine, made, 4, rollout_id=made.rollout_id)
    records(engine, made, 4, days=2)
    cut(engine)
    assert how_many(engine, "rollouts") == 1
    assert how_many(engine, "routes") == 3 + 4
    assert how_many(engine, "deployment_history WHERE rollout_id IS NOT NULL") == 4


def test_a_rollout_that_a_record_or_a_replica_names_is_kept(engine: Engine, web: Made) -> None:
    rollouts(engine, web, "a-b a-c a-d a-e a-f")
    first, second = (row["id"] for row in read(engine, "SELECT id FROM rollouts ORDER BY started_at LIMIT 2"))
    gone_routes(engine, web, 1, rollout=first)
    records(engine, web, 1, rollout_id=second)
    cut(engine)
    assert drawn(engine, web.id) == "a-b a-c a-e a-f"


def test_the_record_that_the_next_may_merge_into_is_kept(engine: Engine, web: Made) -> None:
    records(engine, web, 1, days=9)
    write(engine, "UPDATE deployments SET history_id = (SELECT id FROM deployment_history)")
    records(engine, web, 5)
    cut(engine)
    assert how_many(engine, "deployment_history h JOIN deployments d ON d.history_id = h.id") == 1
    assert how_many(engine, "deployment_history") == 2 + 1


def test_revisions_that_something_names_are_kept(engine: Engine, web: Made) -> None:
    write(engine, "UPDATE revisions SET created_at = now() - interval '9 days'")
    rollouts(engine, web, "a-b")
    ids = revisions(engine, web, "tuvwxyz")
    write(engine, "UPDATE deployments SET failed_revision_id = %s, failed_starts = 1, last_failed_at = now()", ids["t"])
    gone_routes(engine, web, 1)
    cut(engine)
    kept = {row["name"] for row in read(engine, "SELECT name FROM revisions")}
    assert kept == {"v1", "v2", "a", "b", "t", "y", "z"}


def test_a_destroyed_deployment_goes_after_its_days_with_all_that_is_its(engine: Engine) -> None:
    made = make_deployment(engine, "", status=DESTROYED)
    other = make_deployment(engine, "", name="other", status=DESTROYED)
    rollouts(engine, made, "a+b b+c", days=6)
    gone_routes(engine, made, 2, days=6)
    records(engine, made, 2, days=6)
    for table in ("autoscaling_rules", "metric_values", "entrances"):
        assert table in CHILDREN
        write(engine, CHILDREN[table], made.id)
    write(engine, "UPDATE deployments SET phase_started_at = now() - interval '4 days'")
    write(engine, "UPDATE deployments SET phase_started_at = now() - interval '6 days' WHERE id = %s", made.id)
    cut(engine)
    assert [row["id"] for row in read(engine, "SELECT id FROM deployments")] == [other.id]
    assert {row["deployment_id"] for row in read(engine, "SELECT deployment_id FROM revisions")} == {other.id}
    assert how_many(engine, "rollout_steps") == 0


CHILDREN: dict[str, LiteralString] = {
    "autoscaling_rules": """
        INSERT INTO autoscaling_rules VALUES (%s, 0, 'load', 'pushed', '', '{}', 'avg', '>', 1, 1, 0, 9, 0, 60, 'load')
    """,
    "metric_values": "INSERT INTO metric_values (deployment_id, series, value) VALUES (%s, 'load', 1)",
    "entrances": "INSERT INTO entrances (kind, value, deployment_id) VALUES ('host', 'a.example', %s)",
}


def test_what_somebody_holds_is_left_out_and_not_waited_for(engine: Engine, web: Made) -> None:
    records(engine, web, 5)
    with transaction(engine) as holder:
        lock(holder, [web.id])
        assert holder.execute("SELECT").rowcount == 1  # so it is locked
        assert not +in_transaction(engine, lambda connection: cut_deployment(connection, TWO, web.id))
    assert +in_transaction(engine, lambda connection: cut_deployment(connection, TWO, web.id))


def test_deployments_with_a_past_are_found_page_by_page(engine: Engine) -> None:
    made = [make_deployment(engine, "", n=0, name=f"web-{number}") for number in range(51)]
    for deployment in (made[3], made[50]):
        records(engine, deployment, 3)
    first = in_transaction(engine, lambda connection: page_of_past(connection, TWO, None))
    assert first == CutPage((made[3].id,), made[49].id)
    assert in_transaction(engine, lambda connection: page_of_past(connection, TWO, first.last)) == CutPage(
        (made[50].id,), None
    )


def test_a_request_id_is_forgotten_after_its_days_and_not_before(engine: Engine, web: Made) -> None:
    for request_id in ("old", "new"):
        ask(engine, "scale", request_id=request_id, deployment=web.name, desired_replicas=4)
    write(engine, "UPDATE commands SET created_at = now() - interval '25 hours' WHERE request_id = 'old'")
    assert in_transaction(engine, lambda connection: cut_fleet_rows(connection, TWO))["commands"] == 1
    assert ask(engine, "scale", request_id="new", deployment=web.name, desired_replicas=4).repeated
    assert not ask(engine, "scale", request_id="old", deployment=web.name, desired_replicas=4).repeated


def test_the_history_of_the_fleet_is_cut_as_that_of_one_deployment(engine: Engine) -> None:
    write(
        engine,
        """
        INSERT INTO fleet_history (phase, target, actor, message, created_at)
        SELECT 'set_freeze', 'f', 'ann', days::text, now() - days * interval '1 day' FROM generate_series(0.5, 7.5) days
        """,
    )
    cut(engine)
    assert how_many(engine, "fleet_history") == 8, "no page of it has been cut"
    assert in_transaction(engine, lambda connection: cut_fleet_rows(connection, TWO))["fleet_history"] == 6
    assert [row["message"] for row in read(engine, "SELECT message FROM fleet_history ORDER BY created_at")] == [
        "1.5",
        "0.5",
    ]
