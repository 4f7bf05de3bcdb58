from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from celery import Celery

from runtime.process import ProcessRuntime, stop_all
from tasks.settings import celery_settings
from tasks.wake import Waker
from tests.runtime.support import processes_of


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as made:
        yield made


@pytest.fixture
def waker(client: redis.Redis, redis_url: str) -> Iterator[Waker]:
    """A real one; what it sends waits in Valkey, because no worker runs."""
    app = Celery("test", set_as_current=False)
    app.conf.update(celery_settings({"REDIS_URL": redis_url}))
    yield Waker(app, client)
    app.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """For replicas; none is left running at the end."""
    yield tmp_path
    stop_all(tmp_path, grace_seconds=0.1)
    assert processes_of(tmp_path) == []


@pytest.fixture
def runtimes(home: Path) -> dict[str, ProcessRuntime]:
    return {"process": ProcessRuntime(home)}
