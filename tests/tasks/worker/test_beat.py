"""Beat: it sends no tick where nobody reads, and the machine's clock may be set while it counts."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import redis
import structlog
from celery import Celery

from tasks.messaging.queues import ALARM_TASK, DO_IF_NEEDED_TASK, LIFECYCLE_QUEUE, celery_settings
from tasks.redis.wake import MOST_WAITING
from tasks.task_settings import KEY_PREFIX, TaskSettings, settings
from tasks.telemetry.log import configure_logging
from tasks.worker import connections
from tasks.worker.beat import MemoryScheduler, beat_schedule
from tests.support.stack.waiting import eventually
from tests.support.workers.queues import drop_all, waiting


@pytest.fixture
def beat(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryScheduler]:
    monkeypatch.setenv("REDIS_URL", redis_url)
    made = (settings, connections.redis_client, connections.waker)
    for each in made:
        each.cache_clear()
    app = Celery("test", set_as_current=False)
    app.conf.update(celery_settings(TaskSettings(redis_url=redis_url)))
    app.conf.beat_schedule = {"alarm": {**beat_schedule()["alarm"], "schedule": 0.05}}
    yield MemoryScheduler(app)
    app.close()
    connections.redis_client().close()
    for each in made:
        each.cache_clear()


@contextmanager
def logs_of_a_process(*more: logging.Handler) -> Iterator[None]:
    """The logging of beat and workers in this process, to `more` handlers too; afterwards as it was before."""
    root, before = logging.getLogger(), structlog.get_config()
    handlers, level = list(root.handlers), root.level
    configure_logging(logging.INFO)
    root.handlers += more
    try:
        yield
    finally:
        structlog.configure(**before)
        root.handlers[:] = handlers
        root.setLevel(level)


def test_a_tick_is_no_news(
    beat: MemoryScheduler,
    redis_client: redis.Redis,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with logs_of_a_process(caplog.handler), caplog.at_level(logging.INFO):
        eventually(lambda: beat.tick() is not None and redis_client.llen(f"{KEY_PREFIX}{LIFECYCLE_QUEUE}") > 1)
    assert caplog.messages == []
    assert "alarm" not in capsys.readouterr().err


def test_a_tick_is_sent_in_each_interval_but_not_to_a_queue_that_nobody_reads(
    beat: MemoryScheduler, redis_client: redis.Redis
) -> None:
    def alarms() -> int:
        beat.tick()
        return [task for task, _ in waiting(redis_client, LIFECYCLE_QUEUE)].count(ALARM_TASK)

    eventually(lambda: alarms() == 3)
    drop_all(redis_client, LIFECYCLE_QUEUE)
    for _ in range(MOST_WAITING):
        redis_client.lpush(f"{KEY_PREFIX}{LIFECYCLE_QUEUE}", "somebody else's")
    runs = beat.schedule["alarm"].total_run_count
    eventually(lambda: beat.tick() is not None and beat.schedule["alarm"].total_run_count >= runs + 3)
    assert redis_client.llen(f"{KEY_PREFIX}{LIFECYCLE_QUEUE}") == MOST_WAITING
    drop_all(redis_client, LIFECYCLE_QUEUE)
    eventually(lambda: alarms() == 1)


def test_short_ticks_are_not_sent_while_an_alarm_has_found_nothing_due(
    beat: MemoryScheduler, redis_client: redis.Redis
) -> None:
    [short] = [name for name in beat_schedule() if name.startswith("check_pending") and name.endswith("if needed")]
    beat.merge_inplace({short: {**beat_schedule()[short], "schedule": 0.05}})

    def sent() -> list[str]:
        beat.tick()
        found = [task for task, _ in waiting(redis_client, LIFECYCLE_QUEUE)]
        drop_all(redis_client, LIFECYCLE_QUEUE)
        return found

    eventually(lambda: DO_IF_NEEDED_TASK in sent(), what="a short tick")
    connections.waker().note_rest()
    runs = beat.schedule[short].total_run_count
    while beat.schedule[short].total_run_count < runs + 5:
        assert sent() == []
    eventually(lambda: DO_IF_NEEDED_TASK in sent(), what="a short tick once no alarm came for a while")
