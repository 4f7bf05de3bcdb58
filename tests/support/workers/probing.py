"""Services to probe, replicas at their addresses, and passes that look at them."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID

from sqlalchemy import Engine

from tasks.replicas.probing import ProbePass
from tests.support.pictures.pictures import SCALING
from tests.support.rows.deployments import make_deployment, read, write
from tests.support.stack.waiting import eventually

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
BROKEN = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
Looks = Callable[..., ProbePass]


class Service:
    """Sends `reply` to every connection and closes it; while it is None it accepts and never says a word."""

    def __init__(self, server: socket.socket) -> None:
        self.reply: bytes | None = OK
        self.connections: list[socket.socket] = []
        self.address = f"127.0.0.1:{server.getsockname()[1]}"
        threading.Thread(target=self._serve, args=(server,), daemon=True).start()

    def _serve(self, server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                self.connections.append(connection)
                if self.reply is not None:
                    with suppress(OSError):
                        connection.recv(65536)
                        connection.sendall(self.reply)
                        connection.shutdown(socket.SHUT_WR)


@contextmanager
def serving() -> Iterator[Service]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        service = Service(server)
        yield service
        server.shutdown(socket.SHUT_RDWR)
        for connection in service.connections:
            connection.close()


def replica(
    engine: Engine,
    address: str | None,
    picture: str = "■",
    runtime: str = "external",
    *,
    warm_up: dict[str, Any] | None = None,
    **check: Any,
) -> UUID:
    """One that another system runs, so that it is always there; healthy unless drawn otherwise."""
    parts: dict[str, Any] = {
        "external": {"external": {"webhook": "http://127.0.0.1:1/"}},
        "docker": {"docker": {"image": "web:1", "port": 80}},
    }
    spec = {"runtime": runtime, **parts[runtime], "health_check": {"interval_seconds": 0.1, **check}}
    spec |= {"warm_up": warm_up} if warm_up else {}
    name = f"d{read(engine, 'SELECT count(*) FROM deployments')[0]['count']}"
    route_id = make_deployment(engine, picture, name=name, n=1, status=SCALING, spec=spec).routes[0]
    write(engine, "UPDATE routes SET address = %s WHERE id = %s", address, route_id)
    write(engine, "UPDATE routes SET started_at = coalesce(started_at, clock_timestamp()) WHERE id = %s", route_id)
    return route_id


def status(engine: Engine, route_id: UUID) -> str:
    return str(read(engine, "SELECT status FROM routes WHERE id = %s", route_id)[0]["status"])


def versions(engine: Engine) -> list[dict[str, Any]]:
    """Another row version, or a lock on one, and this is another list."""
    return read(
        engine,
        """
        SELECT id, ctid::text, xmin::text, xmax::text FROM routes
        UNION ALL SELECT id, ctid::text, xmin::text, xmax::text FROM deployments ORDER BY 1
        """,
    )


def until(probing: ProbePass, condition: Callable[[], bool], seconds: float = 10) -> None:
    """Look as a worker does, and never for long."""

    def look() -> bool:
        began = time.monotonic()
        probing.look()
        assert time.monotonic() - began < 8, "a look waits for nobody"
        return condition()

    eventually(look, seconds)
