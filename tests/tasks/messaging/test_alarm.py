"""The alarm: one look each second for all that may have become due, and at rest the probes of the worker's own host."""

import pytest
import redis
from sqlalchemy import Engine, event

from db.connection.transactions import engine as worker_engine
from tasks.app import app
from tasks.messaging.queues import SHARED_QUEUES, host_queue, queue
from tasks.task_settings import settings
from tasks.worker.connections import redis_client, waker
from tests.support.pictures.pictures import PENDING, PROVISIONING
from tests.support.rows.deployments import make_deployment, read, write
from tests.support.rows.hosts import up
from tests.support.stack.waiting import eventually
from tests.support.workers.queues import drop_all, waiting

pytestmark = pytest.mark.usefixtures("this_process_is_a_worker")


def test_the_alarm_wakes_for_what_falls_due_and_for_nothing_else(engine: Engine, redis_client: redis.Redis) -> None:
    make_deployment(engine, "■■■|", name="due", status=PROVISIONING)
    make_deployment(engine, "", name="later", status=PENDING)
    write(engine, "UPDATE deployments SET due_at = now() + interval '1 minute' WHERE name = 'later'")
    app.tasks["rollway.wake_what_is_due"](interval=60.0)
    assert [arguments["lifecycle_type"] for _, arguments in waiting(redis_client, "lifecycle")] == ["deploying"]
    drop_all(redis_client, "lifecycle")
    redis_client.delete("rollway:queued:deploying/provisioning")
    app.tasks["rollway.wake_what_is_due"](interval=60.0)
    assert (drop_all(redis_client, "lifecycle"), len(read(engine, "SELECT FROM beat"))) == (0, 1), "the second beat's"


def test_an_alarm_at_rest_takes_one_connection_and_one_more_to_look_at_hosts(engine: Engine) -> None:
    make_deployment(engine, "■■■")
    write(engine, "UPDATE deployments SET due_at = NULL")
    taken: list[object] = []
    event.listen(worker_engine(), "checkout", lambda *_: taken.append(None))
    app.tasks["rollway.wake_what_is_due"](interval=60.0)
    assert len(taken) == 2
    assert waker().is_at_rest()
    write(engine, "UPDATE deployments SET due_at = now()")
    redis_client().flushdb()
    app.tasks["rollway.wake_what_is_due"](interval=60.0)
    assert not waker().is_at_rest()


def test_at_rest_a_worker_probes_its_own_host_and_sends_it_nothing(engine: Engine, redis_client: redis.Redis) -> None:
    host = settings().host
    make_deployment(engine, "■■", n=2)
    up(engine, host)
    write(engine, "UPDATE routes SET host = %s", host)

    def alarm() -> list[tuple[str, dict[str, object]]]:
        redis_client.flushdb()
        app.tasks["rollway.wake_what_is_due"](interval=60.0)
        return waiting(redis_client, host_queue(host))

    write(engine, "UPDATE deployments SET due_at = now()")
    assert [arguments["route_lifecycle_type"] for _, arguments in alarm()] == ["probe"], "others have work as well"
    write(engine, "UPDATE deployments SET due_at = NULL")
    app.amqp.queues.select(SHARED_QUEUES)
    assert [arguments["route_lifecycle_type"] for _, arguments in alarm()] == ["probe"], "another worker takes looks"
    app.amqp.queues.select_add(queue(host_queue(host)))
    assert alarm() == []

    def has_found_nothing() -> bool:
        if [row["status"] for row in read(engine, "SELECT status FROM routes")] == ["failed"] * 2:
            return True
        assert alarm() == [], "the look before this one has not ended"
        return False

    eventually(has_found_nothing, what="a look, which finds that nothing runs there")
