"""Many deployments in one transaction: a constant number of statements, kept wholly or not at all."""

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction, transaction
from db.cycle.applier import StaleSnapshotError
from db.cycle.claim import claim_due, claim_these, load
from db.replicas.host_placement import Placing
from domain.model.states import Verdict
from tasks.cycle.coordinator import write_decisions
from tests.support.pictures.pictures import PROVISIONING, ROLLING_BACK
from tests.support.rows.databases import engine_on
from tests.support.rows.deployments import drawn, make_deployment, read, snapshot, write
from tests.support.rows.sent_statements import sent_by
from tests.support.workers.chunks import fleet
from tests.support.workers.coordinators import coordinator_without_redis, handler_for


def test_a_chunk_of_fifty_takes_as_many_statements_as_a_chunk_of_one(engine: Engine) -> None:
    sent, handler = sent_by(engine), handler_for(PROVISIONING)
    counts = []
    for already, more in ((0, 1), (1, 49)):
        for number in range(already, already + more):
            make_deployment(engine, "■■■|", name=f"web-{number}", status=PROVISIONING)
        write(engine, "UPDATE deployments SET due_at = now()")
        write(engine, "UPDATE routes SET status = 'healthy', started_at = now() WHERE status = 'provisioning'")
        sent.clear()
        done = coordinator_without_redis(engine).process_chunk(handler)
        assert len(done.result.need_retry) == done.looked_at == already + more
        counts.append(len(sent))
    # one more: the first deployment repeats its record of the timeline, the others begin theirs
    assert counts == [14, 15]


def test_a_chunk_that_only_waits_loads_no_route_and_moves_the_mark_and_nothing_else(engine: Engine) -> None:
    sent = sent_by(engine)
    ids = fleet(engine, 3, "■■|◇")
    rollouts = read(engine, "SELECT *, xmin::text FROM rollouts ORDER BY id")
    deployments = read(engine, "SELECT * FROM deployments ORDER BY id")
    sent.clear()
    done = coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert (done.looked_at, done.glanced) == (3, 3)
    assert len(sent) == 4
    assert not any("FROM routes\n" in statement for statement in sent)
    assert read(engine, "SELECT *, xmin::text FROM rollouts ORDER BY id") == rollouts
    moved = {"due_at": rollouts[0]["deadline"], "reason": "waiting: 1 new starting; 0 of 3 ready"}
    assert read(engine, "SELECT * FROM deployments ORDER BY id") == [
        {**deployment, **moved, "due_at": rollout["deadline"]}
        for deployment, rollout in zip(deployments, rollouts, strict=True)
    ]
    assert {snapshot(engine, deployment_id).version for deployment_id in ids} == {1}


@pytest.mark.parametrize("drawn_as", ["■■|◇", "■▲~|■◇", "■|△◇", "|■■◇", "■■|◇□", "■■|◇▫", "■|◌", "■■|■~", "■■|✗◇"])
def test_a_wait_told_by_counts_is_the_one_that_the_routes_tell(engine: Engine, drawn_as: str) -> None:
    fleet(engine, 1, drawn_as)
    handler = handler_for(PROVISIONING)
    with transaction(engine) as connection:
        claim = claim_due(connection, handler.targets, 10)
        (claimed,) = claim.deployments
        (full,) = load(connection, [claimed])
    seen = claimed.glimpse()
    wait = handler.glance(seen, claim.now) if seen else None
    (decided,) = handler.execute([full], claim.now).decisions
    assert (wait is not None) is (decided.verdict is Verdict.SKIPPED and "◇" in drawn_as)
    if wait is not None:
        assert wait == (decided.reason, decided.due_at)


def test_a_wait_that_took_too_long_is_decided_from_its_routes(engine: Engine) -> None:
    (waiting,) = fleet(engine, 1, "■■|◇")
    write(engine, "UPDATE rollouts SET deadline = clock_timestamp()")
    coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert snapshot(engine, waiting).status == ROLLING_BACK
    (step,) = read(engine, "SELECT inputs FROM rollout_steps")
    assert len(step["inputs"]["deployment"]["routes"]) == 3


def test_a_snapshot_gone_stale_is_refused_and_nothing_of_the_chunk_is_kept(engine: Engine, database: str) -> None:
    ids = fleet(engine, 2)
    handler, other = handler_for(PROVISIONING), engine_on(database)
    with transaction(engine) as connection:
        claim = claim_due(connection, handler.targets, 10)
        deployments = load(connection, claim.deployments)
    write(other, "UPDATE deployments SET version = version + 1 WHERE id = %s", ids[0])
    other.dispose()
    decided = handler.execute(deployments, claim.now).decisions

    with pytest.raises(StaleSnapshotError, match="1 of 2"):
        in_transaction(engine, lambda connection: write_decisions(connection, "x", decided, claim, Placing()))
    assert [drawn(engine, deployment_id) for deployment_id in ids] == ["■■■|", "■■■|"]
    assert read(engine, "SELECT 1 FROM rollout_steps UNION ALL SELECT 1 FROM deployment_history") == []


def test_what_another_worker_holds_is_left_to_it(engine: Engine) -> None:
    ids = fleet(engine, 3)
    with transaction(engine) as connection:
        claim_these(connection, [ids[0]])
        done = coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert done.looked_at == 2
    assert coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING)).looked_at == 1


def test_a_deployment_that_changed_its_status_while_its_half_waited_is_left_alone(engine: Engine) -> None:
    ids = fleet(engine, 2)
    write(engine, "UPDATE deployments SET sub_step = 'rolling_back' WHERE id = %s", ids[0])
    coordinator = coordinator_without_redis(engine)
    done = coordinator._retry(handler_for(PROVISIONING), ids)
    assert done.looked_at == 1
    assert snapshot(engine, ids[0]).version == 1
