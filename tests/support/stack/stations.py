"""The stations of a rollout, each made ready on Postgres and then done: what each costs is counted and measured."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial

from sqlalchemy import Engine

from db.replicas.reports import RouteReport
from domain.model.states import RouteStatus
from runtime.external_runtime import ExternalRuntime
from tasks.redis.wake import Waker
from tasks.replicas.host_replicas import HostReplicas
from tasks.replicas.reporting import write_reports
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import HERE, ask, make_deployment, write
from tests.support.rows.hosts import up
from tests.support.workers.coordinators import coordinator_without_redis, handler_for

Station = Callable[[Engine, Waker], Callable[[], object]]
"""Makes ready what it works on; what it returns does the work."""

_EXTERNAL = {"runtime": "external", "external": {"task": "start", "queue": "theirs"}}


def _command(engine: Engine, _: Waker) -> Callable[[], object]:
    make_deployment(engine, "■■■")
    return lambda: ask(engine, "activate_revision", deployment="web", revision="v2")


def _chunk(drawn: str, engine: Engine, _: Waker) -> Callable[[], object]:
    up(engine, HERE, "other")
    make_deployment(engine, drawn, status=PROVISIONING)
    return partial(coordinator_without_redis(engine).process_chunk, handler_for(PROVISIONING))


def _starting(engine: Engine, waker: Waker) -> Callable[[], object]:
    make_deployment(engine, "■■|◇", status=PROVISIONING, spec=_EXTERNAL)
    write(engine, "UPDATE routes SET started_at = NULL, address = NULL WHERE status = 'provisioning'")
    return _replicas(engine, waker).start


def _probing(engine: Engine, waker: Waker) -> Callable[[], object]:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING)
    write(engine, "UPDATE routes SET started_at = now() WHERE status = 'provisioning'")
    report = RouteReport(made.routes[-1], made.id, RouteStatus.PROVISIONING, RouteStatus.HEALTHY)
    return lambda: write_reports(engine, waker, [report])


def _stopping(engine: Engine, waker: Waker) -> Callable[[], object]:
    make_deployment(engine, "■■~|■", status=PROVISIONING, spec=_EXTERNAL)
    write(engine, "UPDATE routes SET out_of_traffic_at = now() WHERE status = 'terminating'")
    return _replicas(engine, waker).stop


def _replicas(engine: Engine, waker: Waker) -> HostReplicas:
    return HostReplicas(engine, {"external": ExternalRuntime(lambda *_: None)}, waker, HERE, timedelta(seconds=5))


STATIONS: Mapping[str, Station] = {
    "a command": _command,
    "a chunk of one deployment that changes": partial(_chunk, "■■■|"),
    "a chunk of one that waits": partial(_chunk, "■■|◇"),
    "starting a replica": _starting,
    "a replica is healthy": _probing,
    "asking a replica to stop": _stopping,
}
