"""Many deployments in one transaction: a constant number of statements, and each error an error of its own."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, Self
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import Engine, event

from db.cycle.applier import StaleSnapshotError, StrategyResultApplier
from db.cycle.claim import claim_due, claim_these
from db.cycle.load import load
from db.engine import in_transaction, transaction
from domain.changes import Decision, RouteChanges
from domain.handlers.deploying_provisioning import DeployingProvisioningHandler
from domain.model import Deployment, Verdict
from domain.transitions import Limits
from tests.support.coordinators import coordinator_without_redis, handler_for, run_until_quiet
from tests.support.deployments import ask, drawn, engine_on, make_deployment, mark, read, snapshot, write
from tests.support.pictures import PROVISIONING, ROLLING_BACK

Decide = Callable[[Deployment], Decision | None]


@dataclass(frozen=True)
class OneGoesWrong(DeployingProvisioningHandler):
    """Like the real one, but `wrong` decides about some."""

    wrong: Decide

    def decide(self, deployment: Deployment, now: datetime) -> Decision:
        return self.wrong(deployment) or super().decide(deployment, now)


class CountingCursor(psycopg.Cursor[Any]):
    sent: ClassVar[list[Any]] = []

    def execute(self, query: Any, *arguments: Any, **options: Any) -> Self:
        if query != ";":  # the pool's ping
            self.sent.append(query)
        return super().execute(query, *arguments, **options)

    def copy(self, statement: Any, *arguments: Any, **options: Any) -> Any:
        self.sent.append(statement)
        return super().copy(statement, *arguments, **options)


@pytest.fixture
def sent(engine: Engine) -> list[Any]:
    """Every statement that the engine's connections send."""

    @event.listens_for(engine, "connect")
    def count(connection: psycopg.Connection, _: object) -> None:
        connection.cursor_factory = CountingCursor

    CountingCursor.sent.clear()
    return CountingCursor.sent


def fleet(engine: Engine, count: int, picture: str = "■■■|") -> list[UUID]:
    return [make_deployment(engine, picture, name=f"web-{i}", status=PROVISIONING).id for i in range(count)]


def test_a_chunk_of_fifty_takes_as_many_statements_as_a_chunk_of_one(engine: Engine, sent: list[Any]) -> None:
    coordinator, handler = coordinator_without_redis(engine), handler_for(PROVISIONING)
    counts = []
    for already, more in ((0, 1), (1, 49)):
        for number in range(already, already + more):
            make_deployment(engine, "■■■|", name=f"web-{number}", status=PROVISIONING)
        write(engine, "UPDATE deployments SET due_at = now()")
        write(engine, "UPDATE routes SET status = 'healthy', started_at = now() WHERE status = 'provisioning'")
        sent.clear()
        done = coordinator.process_chunk(handler)
        assert len(done.decided.need_retry) == done.seen == already + more
        counts.append(len(sent))
    # one more: the first deployment repeats its record of the timeline, the others begin theirs
    assert counts == [10, 11]


def test_a_chunk_that_only_waits_loads_no_route_and_moves_the_mark_and_nothing_else(
    engine: Engine, sent: list[Any]
) -> None:
    ids = fleet(engine, 3, "■■|◇")
    rollouts = read(engine, "SELECT *, xmin::text FROM rollouts ORDER BY id")
    deployments = read(engine, "SELECT * FROM deployments ORDER BY id")
    sent.clear()
    done = coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert (done.seen, len(done.decided.skipped)) == (3, 3)
    assert len(sent) == 4
    assert not any("FROM routes\n" in statement for statement in sent)
    assert read(engine, "SELECT *, xmin::text FROM rollouts ORDER BY id") == rollouts
    moved = {"due_at": rollouts[0]["deadline"], "reason": "waiting: 1 new starting; 0 of 3 ready"}
    assert read(engine, "SELECT * FROM deployments ORDER BY id") == [
        {**one, **moved, "due_at": rollout["deadline"]} for one, rollout in zip(deployments, rollouts, strict=True)
    ]
    assert {snapshot(engine, one).version for one in ids} == {1}


@pytest.mark.parametrize("drawn_as", ["■■|◇", "■▲~|■◇", "■|△◇", "|■■◇", "■■|◇□", "■■|◇▫", "■|◌", "■■|■~", "■■|✗◇"])
def test_a_wait_told_by_counts_is_the_one_that_the_routes_tell(engine: Engine, drawn_as: str) -> None:
    fleet(engine, 1, drawn_as)
    handler = handler_for(PROVISIONING)
    with transaction(engine) as connection:
        claim = claim_due(connection, handler.targets, 10)
        (claimed,) = claim.deployments
        (full,) = load(connection, [claimed])
    assert claimed.counts is not None
    wait = handler.glance(claimed.deployment(), claimed.counts, claim.now)
    (decided,) = handler.execute([full], claim.now).everything
    assert (wait is not None) is (decided.verdict is Verdict.SKIPPED and "◇" in drawn_as)
    if wait is not None:
        assert wait == replace(decided, deployment=replace(full, routes=()))


def test_a_wait_that_took_too_long_is_decided_from_its_routes(engine: Engine) -> None:
    (one,) = fleet(engine, 1, "■■|◇")
    write(engine, "UPDATE rollouts SET deadline = clock_timestamp()")
    coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert snapshot(engine, one).status == ROLLING_BACK
    (step,) = read(engine, "SELECT inputs FROM rollout_steps")
    assert len(step["inputs"]["deployment"]["routes"]) == 3


def test_a_handler_that_raises_for_one_is_an_error_of_that_one_alone(engine: Engine) -> None:
    ids = fleet(engine, 3)

    def wrong(one: Deployment) -> Decision | None:
        if one.id == ids[1]:
            raise RuntimeError("no idea")
        return None

    done = coordinator_without_redis(engine).process_chunk(OneGoesWrong(wrong))
    assert done.applied.created == 2
    assert [drawn(engine, one) for one in ids] == ["■■|◇", "■■■|", "■■|◇"]
    assert snapshot(engine, ids[1]).phase_attempts == 1
    assert reason_of(engine, ids[1]) == "RuntimeError: no idea"


def creates_for_nobody(one: Deployment) -> Decision:
    """A route of a revision that this deployment does not have: Postgres refuses the whole chunk."""
    return Decision.moved("wrong", RouteChanges.create(one.id, 1))


def wants_fewer_than_none(_: Deployment) -> Decision:
    return replace(Decision.moved("wrong", RouteChanges()), desired_replicas=-1)


def says_nothing_text_can_hold(_: Deployment) -> Decision:
    return Decision.moved("wrong\0", RouteChanges())


@pytest.mark.parametrize(
    ("wrong", "error", "position"),
    [
        (creates_for_nobody, "routes_revision_id_fkey", 0),
        (wants_fewer_than_none, "deployments_desired_replicas_check", 4),
        (says_nothing_text_can_hold, "CharacterNotInRepertoire", 7),
    ],
)
def test_a_write_that_postgres_refuses_is_an_error_of_that_deployment_alone(
    engine: Engine, wrong: Callable[[Deployment], Decision], error: str, position: int
) -> None:
    ids = fleet(engine, 8)
    bad = ids.pop(position)
    handler = OneGoesWrong(lambda one: wrong(one) if one.id == bad else None)
    done = coordinator_without_redis(engine).process_chunk(handler)
    assert (done.seen, done.applied.created, done.applied.drained) == (8, 7, 7)
    assert {drawn(engine, one) for one in ids} == {"■■|◇"}
    assert drawn(engine, bad) == "■■■|"
    assert {snapshot(engine, one).phase_attempts for one in ids} == {0}
    assert snapshot(engine, bad).phase_attempts == 1
    assert reason_of(engine, bad).startswith(f"{error}: ")
    (record,) = read(engine, "SELECT result, error_code FROM deployment_history WHERE deployment_id = %s", bad)
    assert (record["result"], record["error_code"]) == ("error", error)


def test_after_five_such_errors_the_rollout_is_given_up(engine: Engine) -> None:
    (bad,) = fleet(engine, 1)
    coordinator, handler = coordinator_without_redis(engine), OneGoesWrong(wants_fewer_than_none)
    for attempt in range(1, 5):
        mark(engine, bad)
        coordinator.process_chunk(handler)
        one = snapshot(engine, bad)
        assert (one.status, one.phase_attempts) == (PROVISIONING, attempt)
    mark(engine, bad)
    coordinator.process_chunk(handler)
    assert snapshot(engine, bad).status == ROLLING_BACK
    assert reason_of(engine, bad).startswith("5 errors in a row; last: deployments_desired_replicas_check: ")
    records = read(engine, "SELECT result, attempts FROM deployment_history ORDER BY created_at")
    assert [(one["result"], one["attempts"]) for one in records] == [("error", 4), ("give_up", 1)]


def test_errors_are_tried_again_ever_later_and_a_success_begins_the_count_anew(engine: Engine) -> None:
    (bad,) = fleet(engine, 1)
    coordinator = coordinator_without_redis(engine)
    pauses = []
    for _ in range(2):
        mark(engine, bad)
        coordinator.process_chunk(OneGoesWrong(wants_fewer_than_none))
        (row,) = read(engine, "SELECT due_at - clock_timestamp() AS pause FROM deployments")
        pauses.append(round(row["pause"].total_seconds()))
    assert pauses == [5, 10]
    mark(engine, bad)
    coordinator.process_chunk(handler_for(PROVISIONING))
    assert snapshot(engine, bad).phase_attempts == 0


class LimitsRaise(DeployingProvisioningHandler):
    def limits(self, deployment: Deployment) -> Limits:
        if deployment.name == "web-1":
            raise AssertionError
        return super().limits(deployment)


def test_a_handler_whose_limits_raise_without_a_word_spares_the_others(engine: Engine) -> None:
    ids = fleet(engine, 3)
    coordinator_without_redis(engine).process_chunk(LimitsRaise())
    assert [drawn(engine, one) for one in ids] == ["■■|◇", "■■■|", "■■|◇"]
    assert snapshot(engine, ids[1]).phase_attempts == 1
    assert "AssertionError" in reason_of(engine, ids[1])


def test_a_rollout_that_this_release_cannot_read_spares_the_others_and_can_be_destroyed(engine: Engine) -> None:
    ids = fleet(engine, 3)
    unread = "UPDATE rollouts SET strategy = 'of the next release', spec = '{\"waves\": 7}' WHERE deployment_id = %s"
    write(engine, unread, ids[1])
    done = coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert done.applied.created == 2
    assert [drawn(engine, one) for one in ids] == ["■■|◇", "■■■|", "■■|◇"]
    assert "of the next release" in reason_of(engine, ids[1])
    (step,) = read(
        engine, "SELECT inputs FROM rollout_steps JOIN rollouts ON id = rollout_id WHERE deployment_id = %s", ids[1]
    )
    assert step["inputs"]["deployment"]["rollout"]["policy"]["spec"]["stored"] == {"waves": 7}
    ask(engine, "destroy", deployment="web-1")
    run_until_quiet(coordinator_without_redis(engine))
    assert drawn(engine, ids[1]) == ""


def test_a_rollout_with_settings_of_another_release_spares_the_others(engine: Engine) -> None:
    ids = fleet(engine, 3)
    write(engine, "UPDATE rollouts SET spec = spec || '{\"waves\": 7}' WHERE deployment_id = %s", ids[1])
    coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert [drawn(engine, one) for one in ids] == ["■■|◇", "■■■|", "■■|◇"]
    assert "no strategy 'rolling_update' that knows these settings" in reason_of(engine, ids[1])


def test_a_snapshot_gone_stale_is_refused_and_nothing_of_the_chunk_is_kept(engine: Engine, database: str) -> None:
    ids = fleet(engine, 2)
    handler, other = handler_for(PROVISIONING), engine_on(database)
    with transaction(engine) as connection:
        claim = claim_due(connection, handler.targets, 10)
        deployments = load(connection, claim.deployments)
    write(other, "UPDATE deployments SET version = version + 1 WHERE id = %s", ids[0])
    other.dispose()
    decided = handler.execute(deployments, claim.now).everything

    with pytest.raises(StaleSnapshotError, match="1 of 2"):
        in_transaction(engine, lambda connection: StrategyResultApplier(connection, "x").apply(decided, claim))
    assert [drawn(engine, one) for one in ids] == ["■■■|", "■■■|"]
    assert read(engine, "SELECT 1 FROM rollout_steps UNION ALL SELECT 1 FROM deployment_history") == []


def test_what_another_worker_holds_is_left_to_it(engine: Engine) -> None:
    ids = fleet(engine, 3)
    with transaction(engine) as connection:
        claim_these(connection, [ids[0]])
        done = coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert done.seen == 2
    assert coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING)).seen == 1


def test_a_deployment_that_changed_its_status_while_its_half_waited_is_left_alone(engine: Engine) -> None:
    ids = fleet(engine, 2)
    write(engine, "UPDATE deployments SET sub_step = 'rolling_back' WHERE id = %s", ids[0])
    coordinator = coordinator_without_redis(engine)
    done = coordinator._again(handler_for(PROVISIONING), ids)
    assert done.seen == 1
    assert snapshot(engine, ids[0]).version == 1


def reason_of(engine: Engine, deployment_id: UUID) -> str:
    (row,) = read(engine, "SELECT reason FROM deployments WHERE id = %s", deployment_id)
    return str(row["reason"])
