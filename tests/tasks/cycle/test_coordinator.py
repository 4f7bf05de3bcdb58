"""One pass of a handler: under a lock, chunk by chunk, until nothing is due or somebody says stop."""

import threading
from contextlib import nullcontext
from datetime import datetime

import psycopg
import pytest
import redis
from sqlalchemy import Engine

from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import make_engine
from domain.handlers.deploying import DeployingProvisioningHandler
from domain.handlers.dispatch import HANDLERS, HandlerRegistry
from domain.handlers.scaling import CheckPendingHandler
from domain.model.decision import Decision
from domain.model.deployment import Deployment
from domain.model.lifecycle_events import (
    DeploymentLifecycleType,
    DoDeploymentLifecycleEvent,
    DoDeploymentLifecycleIfNeededEvent,
)
from domain.model.states import DeploymentSubStep
from domain.text.errors import InvalidInputError
from tasks.cycle.coordinator import DeploymentCoordinator, in_halves
from tasks.messaging.queues import host_queue
from tasks.redis.locks import Slots
from tasks.redis.wake import Waker
from tests.support.pictures.pictures import PENDING, PROVISIONING, ROLLING_BACK
from tests.support.rows.deployments import HERE, ask, make_deployment, read, snapshot, write
from tests.support.rows.hosts import up
from tests.support.stack.waiting import eventually
from tests.support.workers.queues import drop_all, waiting

PROVISION = DoDeploymentLifecycleEvent(DeploymentLifecycleType.DEPLOYING, DeploymentSubStep.PROVISIONING)
PEND = DoDeploymentLifecycleEvent(DeploymentLifecycleType.CHECK_PENDING)


@pytest.fixture
def slots(redis_client: redis.Redis, waker: Waker) -> Slots:
    return Slots(redis_client, 1, 3, waker.send)


def coordinator(
    engine: Engine, slots: Slots, waker: Waker, handlers: HandlerRegistry = HANDLERS, chunk: int = 2
) -> DeploymentCoordinator:
    return DeploymentCoordinator(engine, slots, waker, handlers, chunk, 10, threading.Event())


@pytest.fixture
def pending(engine: Engine) -> None:
    for number in range(6):
        make_deployment(engine, "", name=f"web-{number}", status=PENDING)


class Waits(CheckPendingHandler):
    """Looks, and does something of the test's own at each look."""

    def __init__(self, then: threading.Event) -> None:
        self.looked_at: list[str] = []
        self.then = then

    def decide(self, deployment: Deployment, now: datetime) -> Decision:
        self.looked_at.append(deployment.name)
        self.then.set()
        return super().decide(deployment, now)


def test_an_event_that_no_handler_answers_to_is_refused_with_those_there_are(
    engine: Engine, slots: Slots, waker: Waker
) -> None:
    unknown = DoDeploymentLifecycleEvent(DeploymentLifecycleType.DEPLOYING)
    with pytest.raises(InvalidInputError, match="deploying/provisioning") as refused:
        coordinator(engine, slots, waker).process_deployment_lifecycle(unknown)
    assert refused.value.detail == {"field": "lifecycle_type"}


@pytest.mark.parametrize("kind", [DoDeploymentLifecycleEvent, DoDeploymentLifecycleIfNeededEvent])
@pytest.mark.usefixtures("pending")
def test_it_goes_on_until_nothing_is_due_and_the_long_tick_marks_all_of_them_anew(
    engine: Engine, slots: Slots, waker: Waker, kind: type[DoDeploymentLifecycleEvent]
) -> None:
    mine = coordinator(engine, slots, waker)
    event = kind(DeploymentLifecycleType.CHECK_PENDING)
    assert mine.process_deployment_lifecycle(event) == 6
    assert mine.process_deployment_lifecycle(event) == (0 if kind is DoDeploymentLifecycleIfNeededEvent else 6)


@pytest.mark.usefixtures("pending")
def test_when_all_slots_are_taken_it_does_nothing_and_is_sent_again(
    engine: Engine, redis_client: redis.Redis, slots: Slots, waker: Waker
) -> None:
    with slots.hold("check_pending", "check_pending"):
        assert coordinator(engine, slots, waker).process_deployment_lifecycle(PEND) == 0
        assert waiting(redis_client, "lifecycle") == []
    assert [arguments["lifecycle_type"] for _, arguments in waiting(redis_client, "lifecycle")] == ["check_pending"]


@pytest.mark.usefixtures("pending")
def test_asked_to_stop_it_finishes_the_chunk_in_hand_and_claims_no_other(
    engine: Engine, redis_client: redis.Redis, slots: Slots, waker: Waker
) -> None:
    stopping = threading.Event()
    handler = Waits(then=stopping)
    mine = DeploymentCoordinator(engine, slots, waker, {PEND: handler}, 2, 10, stopping)
    assert mine.process_deployment_lifecycle(PEND) == 2
    assert len(handler.looked_at) == 2
    assert len(read(engine, "SELECT 1 FROM deployments WHERE due_at IS NULL")) == 2, "both are written"
    assert redis_client.keys("rollway:lock:*") == [], "and the lock is free for the next worker"
    assert mine.process_deployment_lifecycle(PEND) == 0


@pytest.mark.usefixtures("pending")
def test_when_the_lock_is_lost_it_finishes_the_chunk_in_hand_and_claims_no_other(
    engine: Engine, redis_client: redis.Redis, slots: Slots, waker: Waker
) -> None:
    class LosesTheLock(CheckPendingHandler):
        def decide(self, deployment: Deployment, now: datetime) -> Decision:
            redis_client.delete("rollway:lock:check_pending:0")
            eventually(lambda: "lock renewal" not in {thread.name for thread in threading.enumerate()})
            return super().decide(deployment, now)

    mine = coordinator(engine, slots, waker, {PEND: LosesTheLock()})
    assert mine.process_deployment_lifecycle(PEND) == 2


def test_what_follows_is_woken_after_the_commit(
    engine: Engine, redis_client: redis.Redis, slots: Slots, waker: Waker
) -> None:
    up(engine, HERE)
    made = make_deployment(engine, "■■■|", status=PROVISIONING)
    mine = coordinator(engine, slots, waker)
    mine.process_deployment_lifecycle(PROVISION)
    assert [arguments for _, arguments in waiting(redis_client, host_queue(HERE))] == [
        {"route_lifecycle_type": "start", "host": HERE},
        {"route_lifecycle_type": "stop", "host": HERE},
    ]
    assert drop_all(redis_client, "lifecycle") == 0
    write(engine, "UPDATE rollouts SET deadline = now()")
    write(engine, "UPDATE deployments SET due_at = now()")
    mine.process_deployment_lifecycle(PROVISION)
    assert snapshot(engine, made.id).status == ROLLING_BACK
    assert [arguments["sub_step"] for _, arguments in waiting(redis_client, "lifecycle")] == ["rolling_back"]


def test_new_replicas_that_have_no_host_are_asked_for_all_the_same(
    engine: Engine, redis_client: redis.Redis, slots: Slots, waker: Waker
) -> None:
    make_deployment(engine, "■■|", status=PROVISIONING)
    coordinator(engine, slots, waker).process_deployment_lifecycle(PROVISION)
    assert [arguments for _, arguments in waiting(redis_client, "routes")] == [{"route_lifecycle_type": "start"}]


def test_a_wait_wakes_nobody(engine: Engine, redis_client: redis.Redis, slots: Slots, waker: Waker) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING)
    coordinator(engine, slots, waker).process_deployment_lifecycle(PROVISION)
    assert waiting(redis_client, "lifecycle") == waiting(redis_client, "routes") == []


@pytest.mark.parametrize(("count", "asked"), [(2, True), (1, False)])
def test_a_full_chunk_asks_another_worker_for_help_while_a_slot_is_free(
    engine: Engine,
    redis_client: redis.Redis,
    waker: Waker,
    pending: None,  # noqa: ARG001  (six deployments)
    *,
    count: int,
    asked: bool,
) -> None:
    shared = Slots(redis_client, count, 5, waker.send)
    coordinator(engine, shared, waker, chunk=4).process_deployment_lifecycle(PEND)
    sent = [arguments["lifecycle_type"] for _, arguments in waiting(redis_client, "lifecycle")]
    assert ("check_pending" in sent) is asked


class IsSlow(DeployingProvisioningHandler):
    """It looks for so long that an undo, which is asked for meanwhile, cannot wait."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.noted: list[str] = []

    def decide(self, deployment: Deployment, now: datetime) -> Decision:
        if not self.noted:
            self.noted.append(ask(self.engine, "undo", deployment=deployment.name).result["noted"])
        return super().decide(deployment, now)


def test_an_undo_that_is_asked_for_during_a_slow_look_comes_right_after_it(
    engine: Engine, database: str, slots: Slots, waker: Waker
) -> None:
    made = make_deployment(engine, "■■|■", status=PROVISIONING)
    hasty = make_engine(DatabaseSettings(url=database, lock_timeout=100))
    slow = IsSlow(hasty)
    coordinator(engine, slots, waker, {PROVISION: slow}).process_deployment_lifecycle(PROVISION)
    hasty.dispose()
    assert slow.noted[0].startswith("web has been held for")
    assert snapshot(engine, made.id).status == ROLLING_BACK


@pytest.mark.parametrize(
    ("error", "blamed"),
    [
        (psycopg.OperationalError("server closed the connection unexpectedly"), []),
        (psycopg.errors.ConnectionTimeout("connection timeout expired"), []),
        (psycopg.errors.AdminShutdown("terminating connection due to administrator command"), []),
        (psycopg.errors.QueryCanceled("canceling statement due to statement timeout"), ["web"]),
        (psycopg.errors.CheckViolation("routes_within_ceiling"), ["web"]),
    ],
)
def test_what_befalls_the_way_to_postgres_is_no_deployments_fault(error: psycopg.Error, blamed: list[str]) -> None:
    found: list[str] = []
    with nullcontext() if blamed else pytest.raises(type(error)):
        in_halves(["web"], error, nullcontext, lambda name, _: found.append(name))
    assert found == blamed
