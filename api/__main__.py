"""`python -m api`: the server for proxies, until SIGTERM or Ctrl-C."""

import os
import sys
import threading
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

import structlog
import uvicorn
from fastapi import FastAPI

from api.app import Hooks, make_app
from api.connections import ACCEPTED_AT_ONCE, LONGEST_HEAD, BoundedProtocol, Connections, most_connections
from api.proxies.parts import Parts
from api.settings import ApiSettings
from db.engine import engine
from domain.errors import InvalidInputError
from domain.replicas.events import RouteLifecycleType
from tasks.connections import waker
from tasks.installation import begin
from tasks.log import configure_logging
from tasks.settings import settings

_EXIT_SECONDS = 0.8
_COMPARE_SECONDS = 3.0
_log = structlog.get_logger(__name__)


class _Server(uvicorn.Server):
    """When asked to end, answers held polls at once rather than waiting for them. `exit_code`: 1 after `fail`."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self.exit_code = 0
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal, which may come in the middle of a step of the event loop."""
        super().handle_exit(sig, frame)
        self._end_soon()

    def fail(self) -> None:
        """End, for a supervisor to start this server anew."""
        self.exit_code = 1
        self.should_exit = True
        self._end_soon()

    def _end_soon(self) -> None:
        """End soon, though a thread may wait for a Postgres or a name server that does not answer."""
        timer = threading.Timer(_EXIT_SECONDS, os._exit, (self.exit_code,))
        timer.daemon = True
        timer.start()
        parts = getattr(self._app.state, "parts", None)
        if isinstance(parts, Parts):
            parts.loop.call_soon_threadsafe(parts.publisher.stop)


def main() -> None:
    """Serve."""
    configure_logging()
    servers: list[_Server] = []
    try:
        where = ApiSettings.from_environment(os.environ)
        where.refuse_strangers()
        hooks = Hooks(on_release=_wake_stop, on_failure=lambda: servers[0].fail())  # noqa: PLW0108 -- made below
        app = make_app(engine(), settings().redis_url, where.proxy_key, hooks)
    except InvalidInputError as error:
        sys.exit(error.message)
    if where.proxy_key is None:
        _log.warning("ROLLWAY_PROXY_KEY is not set: whoever runs on this machine may speak for any proxy")
    _compare_installation()
    servers.append(_Server(_config(app, where), app))
    with suppress(KeyboardInterrupt):  # uvicorn raises it again after it has ended in good order
        servers[0].run()
    sys.exit(servers[0].exit_code)


def _config(app: FastAPI, where: ApiSettings) -> uvicorn.Config:
    protocol: Any = partial(BoundedProtocol, connections=Connections(most_connections()))
    return uvicorn.Config(
        app,
        host=where.host,
        port=where.port,
        http=protocol,
        backlog=ACCEPTED_AT_ONCE,
        h11_max_incomplete_event_size=LONGEST_HEAD,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=10,
    )


def _compare_installation() -> None:
    """End this process when Redis is of another installation than the database, also when they answer later."""
    comparing = threading.Thread(target=begin, args=(None,), name="compare installation", daemon=True)
    comparing.start()
    comparing.join(_COMPARE_SECONDS)


def _wake_stop() -> None:
    waker().routes(RouteLifecycleType.STOP)


if __name__ == "__main__":
    main()
