"""Steps of large rollouts are kept as what changed: read again they are what each saw, and what is torn is told."""

import json
from collections.abc import Iterator
from typing import Any, LiteralString
from uuid import UUID

import pytest
from alembic import command
from sqlalchemy import Engine

from db.audit.invariants import impossible_combinations
from db.audit.receipts import seal, unsealed
from db.audit.step_replay import ReplayReport, replay_pages
from db.connection.transactions import in_transaction
from db.views.timeline import StepView, steps_of
from domain.cycle import writes
from domain.cycle.recording import inputs_as_json
from migrations.schema import configuration, upgrade
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import Made, make_deployment, mark, read, snapshot, start_all, write
from tests.support.workers.coordinators import coordinator_without_redis, handler_for
from tests.support.worlds.busy_fleet import STOPPED, busy_fleet

REPLICAS = 40


def large(engine: Engine) -> tuple[Made, list[Any]]:
    """A rollout one by one, with what each of its steps saw."""
    made = make_deployment(engine, "■" * REPLICAS + "|", n=REPLICAS, status=PROVISIONING)
    return made, [saw for _ in range(REPLICAS + 1) for saw in step(engine, made)]


def step(engine: Engine, made: Made) -> Iterator[Any]:
    """One step, if there is one to take; what it saw."""
    mark(engine, made.id)
    saw = inputs_as_json(snapshot(engine, made.id), in_transaction(engine, now))["deployment"]
    before = read(engine, "SELECT count(*) AS c FROM rollout_steps")
    coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    start_all(engine)
    write(engine, STOPPED)
    if read(engine, "SELECT count(*) AS c FROM rollout_steps") != before:
        yield saw


def now(connection: Any) -> Any:
    return connection.execute("SELECT now()").fetchone()[0]


def told(engine: Engine, rollout_id: UUID | None, after: int = 0) -> list[StepView]:
    assert rollout_id is not None
    return in_transaction(engine, lambda connection: steps_of(connection, rollout_id, after))


def replayed(engine: Engine) -> ReplayReport:
    return sum(replay_pages(engine), ReplayReport())


def test_each_step_of_a_large_rollout_is_told_as_it_was_seen(engine: Engine) -> None:
    made, seen = large(engine)
    kept = read(engine, "SELECT whole_step, length(inputs::text) AS size FROM rollout_steps ORDER BY step_no")
    assert len(kept) == len(seen) > REPLICAS
    assert [row["whole_step"] for row in kept[:10]] == [None, *[1] * 7, None, 9]
    assert max(row["size"] for row in kept if row["whole_step"]) * 8 < min(
        row["size"] for row in kept if not row["whole_step"]
    )
    found = told(engine, made.rollout_id)
    assert [view.inputs["deployment"] for view in found] == seen
    for after in (1, 4, 8, 9, 20, len(seen)):
        assert told(engine, made.rollout_id, after) == found[after:]
    assert replayed(engine) == ReplayReport(equal=len(seen))


def test_every_strategy_and_every_way_is_folded_to_the_same_decisions(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "SMALL", 0)
    for _ in busy_fleet(engine, 2):
        pass
    (kept,) = read(engine, "SELECT count(*) AS c, count(whole_step) AS changed FROM rollout_steps")
    assert kept["changed"] > 80
    assert replayed(engine) == ReplayReport(equal=kept["c"])
    assert in_transaction(engine, impossible_combinations) == []


def test_what_the_release_before_recorded_whole_is_built_on(engine: Engine) -> None:
    made, seen = large(engine)
    whole = json.dumps({"deployment": seen[4], "now": told(engine, made.rollout_id)[4].inputs["now"]})
    later = "WHERE step_no = 5"
    write(engine, f"UPDATE rollout_steps SET inputs = %s, whole_step = NULL {later}", whole)
    write(engine, "UPDATE rollout_steps SET whole_step = 5 WHERE step_no BETWEEN 6 AND 8")
    assert [view.inputs["deployment"] for view in told(engine, made.rollout_id)] == seen
    assert in_transaction(engine, impossible_combinations) == []


TORN: dict[str, tuple[LiteralString, int, list[int]]] = {
    "missing": ("DELETE FROM rollout_steps WHERE step_no = 5", 4, [6, 7, 8]),
    "the whole one missing": ("DELETE FROM rollout_steps WHERE step_no = 1", 0, [2, 3, 4, 5, 6, 7, 8]),
    "altered": ("UPDATE rollout_steps SET inputs = '{\"changed\": null}' WHERE step_no = 5", 4, [5, 6, 7, 8]),
}
"""What is done, how many steps before it are told, and which are lost."""


@pytest.mark.decides_wrongly
@pytest.mark.parametrize("torn", TORN)
def test_a_link_that_is_missing_is_a_finding_and_nothing_fails(engine: Engine, torn: str) -> None:
    made, seen = large(engine)
    statement, kept, lost = TORN[torn]
    write(engine, statement)
    left = [*range(1, kept + 1), *range(9, len(seen) + 1)]
    assert [view.step_no for view in told(engine, made.rollout_id)] == left
    report = replayed(engine)
    assert (report.equal, [step.step_no for step in report.lost]) == (len(left), lost)
    (finding,) = report.findings
    assert finding.startswith(f"web, rollout {made.rollout_id}: {len(lost)} steps from step {lost[0]} on cannot be ")
    audit = {found.code: found.sentence for found in in_transaction(engine, impossible_combinations)}
    assert audit.keys() == (set() if torn == "altered" else {"step_builds_on_nothing", "steps_do_not_add_up"})
    ((deployment_id, rollout_id),) = in_transaction(engine, lambda connection: unsealed(connection, 10))
    receipt = in_transaction(engine, lambda connection: seal(connection, deployment_id, rollout_id))
    assert receipt is not None
    assert receipt.document["replayed"]["equal"] == len(left)


@pytest.mark.decides_wrongly
def test_a_rollout_goes_on_where_its_last_step_cannot_be_told(engine: Engine) -> None:
    made = make_deployment(engine, "■" * REPLICAS + "|", n=REPLICAS, status=PROVISIONING)
    for _ in range(3):
        assert list(step(engine, made))
    write(engine, "UPDATE rollout_steps SET inputs = '{\"changed\": 3}' WHERE step_no = 2")
    (saw,) = step(engine, made)
    assert told(engine, made.rollout_id)[-1].inputs["deployment"] == saw
    (last,) = read(engine, "SELECT whole_step FROM rollout_steps WHERE step_no = 4")
    assert last["whole_step"] is None


def test_the_release_before_finds_every_step_whole(empty_engine: Engine) -> None:
    upgrade(empty_engine)
    made, seen = large(empty_engine)
    found = told(empty_engine, made.rollout_id)
    with empty_engine.connect() as connection:
        config = configuration()
        config.attributes["connection"] = connection
        command.downgrade(config, "0001")
    kept = read(empty_engine, "SELECT inputs FROM rollout_steps ORDER BY step_no")
    assert [row["inputs"]["deployment"] for row in kept] == seen
    assert [row["inputs"] for row in kept] == [view.inputs for view in found]
