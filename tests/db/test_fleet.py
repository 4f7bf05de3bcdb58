"""What is told of the whole fleet: one snapshot, and rollouts that stay counted."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import LiteralString

import pytest
from sqlalchemy import Engine

from db.audit.receipts import seal, unsealed
from db.connection.transactions import in_transaction, transaction
from db.fleet_measures import MEASURES, FleetView, read_fleet
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import ask, make_deployment, read, write

END: LiteralString = """
    WITH ended AS (UPDATE rollouts SET outcome = %s, ended_at = started_at + %s * interval '1 second' WHERE id = %s
                   RETURNING deployment_id)
    UPDATE deployments SET lifecycle = 'ready', sub_step = NULL, rollout_id = NULL, deploying_revision_id = NULL
     WHERE id = (SELECT deployment_id FROM ended)
"""


MANY_SEALED: LiteralString = """
    INSERT INTO rollouts (deployment_id, from_revision_id, to_revision_id, strategy, spec, limits, desired_at_start,
                          ceiling, floor, actor, reason, ended_at, outcome, is_sealed)
    SELECT deployment_id, from_revision_id, to_revision_id, strategy, spec, limits, 2, 3, 2, '', '', now(), 'completed',
           true
      FROM rollouts, generate_series(1, 3000) WHERE id = %s
"""


def fleet(engine: Engine) -> FleetView:
    return in_transaction(engine, read_fleet)


def value(engine: Engine, name: str, *labels: str) -> float:
    """One sample; the labels tell it from its neighbours."""
    return next(number for its, number in fleet(engine).samples[name] if its == labels)


def test_the_fleet_is_told_in_numbers(engine: Engine) -> None:
    make_deployment(engine, "■■▲◇", name="web", n=3)
    make_deployment(engine, "■■|◇", name="rolls", n=2, status=PROVISIONING)
    assert value(engine, "rollway_deployments", "ready") == value(engine, "rollway_deployments", "deploying") == 1
    assert [value(engine, "rollway_routes", status) for status in ("healthy", "unhealthy", "provisioning")] == [4, 1, 2]
    assert value(engine, "rollway_replicas_wanted") == 5
    assert value(engine, "rollway_replicas_serving") == 4
    assert fleet(engine).samples["rollway_deployment_replicas_missing"] == [(("web",), 1.0)]
    assert [value(engine, "rollway_rollouts_open", state) for state in ("forward", "back", "waits")] == [1, 0, 0]
    ask(engine, "pause", deployment="rolls")
    assert [value(engine, "rollway_rollouts_open", state) for state in ("forward", "back", "waits")] == [0, 0, 1]
    assert value(engine, "rollway_database_bytes") > value(engine, "rollway_table_bytes", "routes") > 0


ONCE_WELL: LiteralString = "UPDATE routes SET healthy_at = created_at, status_changed_at = now()"


@pytest.mark.parametrize(
    ("picture", "n", "is_down"),
    [
        ("■▲", 2, False),
        ("▲▲", 2, True),
        ("✗◇", 1, True),
        ("◇◇", 2, False),  # scaled from none: it starts
        ("□", 1, True),
        ("▲", 0, False),
    ],
)
def test_a_deployment_is_down_when_none_serves_that_should(
    engine: Engine, picture: str, n: int, *, is_down: bool
) -> None:
    make_deployment(engine, picture, n=n)
    assert fleet(engine).samples["rollway_deployment_down"] == [], "it has never served"
    write(engine, ONCE_WELL)
    assert fleet(engine).samples["rollway_deployment_down"] == ([(("web",), 1.0)] if is_down else [])
    ask(engine, "set_maintenance", deployment="web", state="on")
    assert fleet(engine).samples["rollway_deployment_down"] == [], "who put it into maintenance knows"


def test_every_measure_has_a_value_for_each_of_its_labels(engine: Engine) -> None:
    samples = fleet(engine).samples
    assert {measure.name: {len(labels) for labels, _ in samples[measure.name]} for measure in MEASURES} == {
        measure.name: {len(measure.labels)} if samples[measure.name] else set() for measure in MEASURES
    }


def counted(engine: Engine) -> list[tuple[str, str, float, list[int]]]:
    """Strategy, outcome, seconds, and the buckets in which there are any."""
    return sorted(
        (row.strategy, row.outcome, row.seconds, [at for at, n in enumerate(row.buckets) if n])
        for row in fleet(engine).ended
    )


def test_ended_rollouts_are_counted_once_by_outcome_and_duration_and_stay_counted_without_their_rows(
    engine: Engine,
) -> None:
    ways = [("completed", 4), ("completed", 5), ("rolled_back", 100_000)]
    for number, (outcome, seconds) in enumerate(ways):
        made = make_deployment(engine, "■■|", name=f"web{number}", n=2, status=PROVISIONING)
        write(engine, END, outcome, seconds, made.rollout_id)
        write(engine, "UPDATE rollouts SET outcome = outcome")
    expected = [("rolling_update", "completed", 9.0, [0]), ("rolling_update", "rolled_back", 100_000.0, [11])]
    assert counted(engine) == expected
    (first, *_) = in_transaction(engine, lambda connection: unsealed(connection, 3))
    assert in_transaction(engine, lambda connection: seal(connection, *first)) is not None
    assert counted(engine) == expected
    write(engine, "DELETE FROM rollouts")
    assert counted(engine) == expected


FLUSH = "SELECT pg_stat_force_next_flush()"
"""What a session has counted so far is told, and not counted as the next transaction's."""


def test_a_scrape_reads_no_rollout_that_is_counted(engine: Engine) -> None:
    made = make_deployment(engine, "■■|◇", n=2, status=PROVISIONING)
    write(engine, MANY_SEALED, made.rollout_id)
    write(engine, "ANALYZE rollouts")
    read_rows = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'rollouts'"
    read(engine, FLUSH)
    with transaction(engine) as connection:
        read_fleet(connection)
        ((rows,),) = connection.execute(read_rows).fetchall()
    assert 0 < rows < 50


def test_cuts_at_once_wait_for_each_other_in_no_circle_and_count_each_row(engine: Engine) -> None:
    made = [make_deployment(engine, "■|", name=f"web{number}", n=1, status=PROVISIONING) for number in range(4)]
    for number, deployment in enumerate(made):
        write(engine, END, ("completed", "rolled_back")[number % 2], 1, deployment.rollout_id)
    both = threading.Barrier(2)

    def cut(numbers: tuple[int, int]) -> None:
        both.wait()
        write(engine, "DELETE FROM rollouts WHERE id = ANY(%s)", [made[number].rollout_id for number in numbers])

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(cut, [(0, 1), (3, 2)]))
    assert sum(sum(row.buckets) for row in fleet(engine).ended) == 4
    assert read(engine, "SELECT sum(count)::int AS n FROM rollout_counts WHERE bucket = 1") == [{"n": 4}]
