"""Receipts of real rollouts: made from the rows, sealed by a worker in a chain, and kept when the rows are cut."""

from uuid import UUID

import pytest
from sqlalchemy import Engine

from db.audit import invariants, receipts
from db.audit.receipts import made_from_rows, receipt_before, seal, sealed_receipt, unsealed
from db.connection.transactions import in_transaction, transaction
from db.views.planning_views import last_rollout_of
from domain.planning.sealed_receipt import check_seal
from domain.text.errors import RolloutNotFoundError
from tasks import housekeeping
from tasks.app import app
from tasks.telemetry.task_metrics import IMPOSSIBLE_STATES
from tests.support.rows.deployments import ask, make_deployment, read, start_all, write
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet


def roll_out(engine: Engine, revision: str) -> None:
    """Activate it, and let everything start and stop that should."""
    coordinator = coordinator_without_redis(engine)
    ask(engine, "activate_revision", deployment="web", revision=revision, actor="ann", reason="sale")
    for _ in range(20):
        run_until_quiet(coordinator)
        start_all(engine)
        stopped = "status = 'terminated', stopped_at = clock_timestamp()"
        write(engine, f"UPDATE routes SET {stopped} WHERE status = 'terminating'")
        write(engine, "UPDATE deployments SET due_at = clock_timestamp()")
        if read(engine, "SELECT FROM rollouts WHERE outcome IS NULL") == []:
            return
    raise AssertionError(f"the rollout to {revision} did not end")


def seal_all(engine: Engine) -> int:
    found = in_transaction(engine, lambda connection: unsealed(connection, 10))
    for deployment_id, rollout_id in found:
        with transaction(engine) as connection:
            seal(connection, deployment_id, rollout_id)
    return len(found)


def test_receipts_of_a_deployment_are_a_chain_that_outlives_its_rollouts(engine: Engine) -> None:
    make_deployment(engine, "■■■|", n=3)
    roll_out(engine, "v1")
    roll_out(engine, "v2")
    assert seal_all(engine) == 2
    assert seal_all(engine) == 0, "each is sealed once"
    rollouts = [row["id"] for row in read(engine, "SELECT id FROM rollouts ORDER BY started_at")]
    write(engine, "UPDATE routes SET rollout_id = NULL")
    write(engine, "DELETE FROM deployment_history")
    write(engine, "DELETE FROM rollout_steps")
    write(engine, "DELETE FROM rollouts")
    with transaction(engine) as connection:
        first, second = (sealed_receipt(connection, rollout) for rollout in rollouts)
        before = receipt_before(connection, rollouts[1])
    assert first is not None
    assert second is not None
    assert (first.document["to"], second.document["to"]) == ("v1", "v2")
    assert before == first
    assert check_seal(second, before).is_joined is True
    assert second.document["previous_sha256"] == first.sha256
    assert second.document["measured"]["is_floor_kept"] is True
    assert second.document["replayed"]["differing"] == []


@pytest.mark.decides_wrongly
@pytest.mark.usefixtures("this_process_is_a_worker")
def test_receipts_that_cannot_be_made_keep_no_others_waiting_and_are_tried_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "_RECEIPTS", 1)
    make_deployment(engine, "■■■|", n=3)
    roll_out(engine, "v1")
    roll_out(engine, "v2")
    first, second = (row["id"] for row in read(engine, "SELECT id FROM rollouts ORDER BY started_at"))
    write(engine, "UPDATE rollout_steps SET phase = 'not ' || phase WHERE rollout_id = %s", first)
    cut = app.tasks["rollway.cut_the_past"]
    cut()
    cut()
    assert sealed_rollouts(engine) == [second]
    write(engine, "UPDATE rollout_steps SET phase = replace(phase, 'not ', '') WHERE rollout_id = %s", first)
    cut()
    cut()
    assert sealed_rollouts(engine) == [second, first]


def sealed_rollouts(engine: Engine) -> list[UUID]:
    return [row["rollout_id"] for row in read(engine, "SELECT rollout_id FROM receipts ORDER BY number")]


def test_a_receipt_says_who_asked_for_what_and_why_also_while_the_rollout_is_under_way(engine: Engine) -> None:
    make_deployment(engine, "|■■■")
    ask(engine, "activate_revision", deployment="web", revision="v1", actor="ann", reason="sale")
    ask(engine, "pause", deployment="web", actor="bob", reason="lunch")
    with transaction(engine) as connection:
        made = made_from_rows(connection, last_rollout_of(connection, "web").id)
    assert [(act["actor"], act["what"]) for act in made["acts"]] == [("ann", "activate"), ("bob", "pause")]
    assert made["acts"][1]["said"].endswith(": lunch")
    assert made["outcome"] is None
    assert seal_all(engine) == 0, "what is under way has no seal"


def test_what_is_no_rollout_is_told(engine: Engine) -> None:
    made = make_deployment(engine)
    with transaction(engine) as connection, pytest.raises(RolloutNotFoundError, match="'rollway receipt DEPLOYMENT'"):
        made_from_rows(connection, made.id)


@pytest.mark.usefixtures("this_process_is_a_worker")
def test_each_seal_is_told_with_its_hash_and_a_broken_chain_is_found_by_workers_and_doctor(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribed = {"subscription": "archive", "celery_task": "theirs.keep", "queue": "theirs"}
    ask(engine, "set_subscription", **subscribed, types=["rollway.receipt.sealed"])
    monkeypatch.setattr(invariants, "AT_ONCE", 2)
    make_deployment(engine, "■■■|", n=3)
    for revision in ("v1", "v2", "v1", "v2"):
        roll_out(engine, revision)
    housekeeping.seal_receipts()
    kept = read(engine, "SELECT sha256 FROM receipts ORDER BY number")
    told = read(engine, "SELECT data->>'sentence' AS said FROM outbox ORDER BY position")
    assert [row["said"].rpartition(" ")[2] for row in told] == [row["sha256"] for row in kept]
    assert len(kept) == 4

    def found() -> list[str]:
        """By doctor; and by workers, which have looked at all after three times two receipts."""
        before = counted()
        for _ in range(3):
            housekeeping.check_receipts()
        faults = [finding.sentence for finding in invariants.all_chains(engine)]
        assert (counted() > before) is bool(faults)
        return faults

    assert found() == []
    write(engine, "UPDATE receipts SET text = replace(text, 'web', 'bew') WHERE number = 2")
    assert found() == [
        "receipt 2 was changed after it was sealed",
        "receipt 2 is not the one that was there when receipt 3 was sealed",
    ]
    write(engine, "DELETE FROM receipts WHERE number = 2")
    assert found() == ["receipt 2 is gone, and receipt 3 is not"]
    write(engine, "DELETE FROM receipts WHERE number = 1")
    assert found() == [], "the oldest may be cut: it is not known who did it"


def counted() -> float:
    return float(IMPOSSIBLE_STATES._value.get())


def test_a_seal_makes_no_plan(engine: Engine) -> None:
    make_deployment(engine, "■■■|", n=3)
    roll_out(engine, "v1")
    made = receipts._planned.cache_info().misses
    assert seal_all(engine) == 1
    assert receipts._planned.cache_info().misses == made
