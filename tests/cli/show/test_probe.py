"""`rollway probe`: the host of a replica examines it, and the command says what mends it."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
import redis
from sqlalchemy import Engine

from runtime.process.process_runtime import ProcessRuntime
from runtime.process.process_table import drop_children_except
from runtime.process.termination import stop_all
from tasks.hosts.host_rpc import EXAMINATIONS, ExaminationAnswers, HostAnswers, answer_for_host
from tests.cli.conftest import Rollway
from tests.support.pictures.pictures import READY
from tests.support.rows.deployments import make_deployment, write
from tests.support.workers.runtimes import given_back, request

pytestmark = pytest.mark.usefixtures("servers")


@pytest.fixture
def runtime(redis_url: str, tmp_path: Path) -> Iterator[ProcessRuntime]:
    """What runs on host gpu-2, which answers questions."""
    until, home = threading.Event(), tmp_path / "gpu-2"
    with given_back(home), redis.Redis.from_url(redis_url) as client:
        made = ProcessRuntime(home)
        answers = {EXAMINATIONS: ExaminationAnswers({"process": made})}
        thread = answer_for_host(HostAnswers(client, "gpu-2", answers), until)
        yield made
        until.set()
        thread.join(10)
        stop_all(home, grace_seconds=0.1)
        drop_children_except(())


@pytest.fixture
def route(engine: Engine) -> UUID:
    """A replica on that host."""
    (made,) = make_deployment(engine, "■", status=READY).routes
    write(engine, "UPDATE routes SET host = 'gpu-2' WHERE id = %s", made)
    return made


def test_a_replica_is_examined_on_its_host(
    rollway: Rollway, laptop: Rollway, runtime: ProcessRuntime, route: UUID
) -> None:
    runtime.start(request(route_id=route))
    told = rollway("probe", "web")
    assert (told.code, "nothing listens" in told.out, "opened no port yet" in told.out) == (1, True, True), told
    assert json.loads(laptop("probe", "web", "--json").out)["items"][0]["route"] == str(route)
    unknown = rollway("probe", "web", "--revision", "nine")
    assert (unknown.code, "web has no revision nine" in unknown.err) == (1, True), unknown


def test_a_host_that_does_not_answer_is_named(
    rollway: Rollway, engine: Engine, route: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.hosts.host_rpc.TAKEN_SECONDS", 0.1)
    write(engine, "UPDATE routes SET host = 'gone' WHERE id = %s", route)
    told = rollway("probe", "web")
    assert (told.code, "gone does not answer" in told.out) == (1, True), told


def test_where_nothing_runs_the_last_failure_is_shown(rollway: Rollway, engine: Engine, route: UUID) -> None:
    gone = "status = 'failed', traffic_status = 'inactive', stopped_at = now(), status_reason = 'it broke'"
    write(engine, f"UPDATE routes SET {gone} WHERE id = %s", route)
    told = rollway("probe", "web")
    assert (told.code, "No replica of it runs now" in told.out, "it broke" in told.out) == (1, True, True), told
