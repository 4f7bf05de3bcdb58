import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
import redis
from sqlalchemy import Engine

import tasks.worker.composition
import tasks.worker.connections
from db.connection.transactions import engine as engine_of_this_process
from runtime.host_secrets import HostSecrets
from runtime.probing.probes import Prober
from runtime.process.process_runtime import ProcessRuntime
from tasks.app import TASK_MODULES, app
from tasks.redis.wake import Waker
from tasks.replicas.liveness import Silences
from tasks.replicas.probing import ProbePass
from tests.support.rows.deployments import HERE
from tests.support.workers.replicas import Runtimes


@pytest.fixture
def runtimes(replica_home: Path) -> dict[str, ProcessRuntime]:
    return {"process": ProcessRuntime(replica_home)}


def _forget() -> None:
    for thread in threading.enumerate():
        if thread.name == "courier":  # it would open a connection of an engine that is disposed of
            thread.join(60)
    if engine_of_this_process.cache_info().currsize:
        engine_of_this_process().dispose()
    for made in (
        engine_of_this_process,
        *vars(tasks.worker.composition).values(),
        *vars(tasks.worker.connections).values(),
    ):
        if hasattr(made, "cache_clear"):
            made.cache_clear()


@pytest.fixture
def this_process_is_a_worker(
    database: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """It has the tasks, and the servers of this test."""
    for name, value in (("DATABASE_URL", database), ("REDIS_URL", redis_url), ("ROLLWAY_HOME", str(tmp_path))):
        monkeypatch.setenv(name, value)
    _forget()
    for module in TASK_MODULES:
        app.loader.import_task_module(module)
    app.conf.update(broker_url=redis_url, result_backend=redis_url)
    yield
    _forget()


@pytest.fixture
def secrets_folder(tmp_path: Path) -> Path:
    """For secrets: revisions may refer to what is in it."""
    made = tmp_path / "secrets"
    made.mkdir()
    return made


@pytest.fixture
def secrets(secrets_folder: Path) -> HostSecrets:
    return HostSecrets(HERE, (f"file:{secrets_folder}",))


@pytest.fixture
def probe_once(
    engine: Engine, runtimes: Runtimes, waker: Waker, redis_client: redis.Redis
) -> Iterator[Callable[[], bool]]:
    with closing(Prober()) as prober:
        probing = ProbePass(engine, runtimes, waker, redis_client, HERE, prober, Silences(), timedelta(seconds=5))
        yield lambda: probing.look() is not None
