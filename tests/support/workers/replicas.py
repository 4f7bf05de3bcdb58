"""Routes of one deployment, and the real replicas that a host starts for them."""

from collections.abc import Callable
from typing import Any
from urllib.request import Request, urlopen
from uuid import UUID

from sqlalchemy import Engine

from runtime.process.process_runtime import ProcessRuntime
from tasks.replicas.host_replicas import HostReplicas
from tests.support.pictures.pictures import SCALING
from tests.support.rows.deployments import make_deployment, read
from tests.support.stack.waiting import NotInTimeError, eventually
from tests.support.workers.runtimes import HTTP_SERVICE, python

QUICK = {"interval_seconds": 0.1, "failure_threshold": 2, "timeout_seconds": 1}
SERVICE: dict[str, Any] = {"command": list(HTTP_SERVICE), "health_check": QUICK, "drain_seconds": 0.2}
STUBBORN = python(
    "import signal, time; signal.signal(signal.SIGTERM, lambda *_: print('no', flush=True));"
    "print('up', flush=True); time.sleep(60)"
)
Runtimes = dict[str, ProcessRuntime]


def make_route(engine: Engine, spec: dict[str, Any], picture: str = "◇") -> UUID:
    """The first route of a new deployment whose replicas are run so."""
    return make_deployment(engine, picture, n=len(picture), status=SCALING, spec=spec).routes[0]


def route(engine: Engine, route_id: UUID) -> dict[str, Any]:
    """Its row."""
    (row,) = read(engine, "SELECT * FROM routes WHERE id = %s", route_id)
    return row


def until_started(host: HostReplicas) -> None:
    """Start what is to run on the host, as often as a busy machine needs for that."""
    eventually(lambda: not host.start())


def until_asked(engine: Engine, host: HostReplicas, route_id: UUID) -> None:
    """Start what is to run on the host until this replica has been, however busy the machine is and others hang."""
    eventually(lambda: host.start() is not None and route(engine, route_id)["started_at"], what="the replica to start")


def until(engine: Engine, route_id: UUID, status: str, look: Callable[[], object]) -> dict[str, Any]:
    """Look again and again until the route has this status."""

    def looked() -> bool:
        look()
        return bool(route(engine, route_id)["status"] == status)

    try:
        eventually(looked)
    except NotInTimeError as error:
        row = route(engine, route_id)
        raise NotInTimeError(f"not {status}, but {row['status']}: {row['status_reason']}") from error
    return route(engine, route_id)


def post(address: str, path: str) -> None:
    with urlopen(Request(f"http://{address}{path}", method="POST"), timeout=120) as answer:
        assert answer.status == 200
