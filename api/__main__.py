"""`python -m api`: the server for proxies, until SIGTERM or Ctrl-C."""

from tasks.worker.garbage import collect_hardly

collect_hardly()

import os
import sys
import threading
from contextlib import suppress
from types import FrameType

import structlog
import uvicorn
from starlette.applications import Starlette

from api.proxies.components import Parts
from api.proxy_app import Hooks, make_app
from api.proxy_settings import ApiSettings
from api.serving import QuietServer, compare_installation, config, most_connections, most_proxies
from db.connection.transactions import engine
from domain.model.lifecycle_events import RouteLifecycleType
from domain.text.errors import InvalidInputError
from tasks.task_settings import settings
from tasks.telemetry.log import configure_logging
from tasks.worker.connections import waker

_EXIT_SECONDS = 0.8
_log = structlog.get_logger(__name__)


class _ProxiesServer(QuietServer):
    """Ends streams at once when asked to end, rather than waiting for them. `exit_code`: 1 after `fail`."""

    def __init__(self, config: uvicorn.Config, app: Starlette) -> None:
        super().__init__(config)
        self.exit_code = 0
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End streams too."""
        super().handle_exit(sig, frame)
        self._end_soon()

    def fail(self) -> None:
        """End, for a supervisor to start this server again."""
        self.exit_code = 1
        self.should_exit = True
        self.look_now()
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
    configure_logging()
    servers: list[_ProxiesServer] = []
    try:
        where = ApiSettings.from_environment(os.environ)
        where.refuse_strangers()
        hooks = Hooks(on_release=_wake_stop, on_failure=lambda: servers[0].fail())  # noqa: PLW0108 -- made below
        app = make_app(engine(), settings().redis_url, where, hooks)
    except InvalidInputError as error:
        sys.exit(error.message)
    if where.proxy_key is None:
        _log.warning("ROLLWAY_PROXY_KEY is not set: whoever runs on this machine may speak for any proxy")
    compare_installation()
    most = most_connections() - most_proxies()
    servers.append(_ProxiesServer(config(app, where.host, where.port, most, is_forwarded=False), app))
    with suppress(KeyboardInterrupt):  # uvicorn raises it again after it has ended in good order
        servers[0].run()
    sys.exit(servers[0].exit_code)


def _wake_stop() -> None:
    waker().routes(RouteLifecycleType.STOP)


if __name__ == "__main__":
    main()
