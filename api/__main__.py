"""`python -m api`: the server for proxies, until SIGTERM or Ctrl-C."""

import os
import sys
import threading
from contextlib import suppress
from types import FrameType

import uvicorn
from fastapi import FastAPI

from api.app import make_app
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


class _Server(uvicorn.Server):
    """When asked to end, answers held polls at once rather than waiting for them."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal, which may come in the middle of a step of the event loop."""
        super().handle_exit(sig, frame)
        _exit_soon()
        parts = getattr(self._app.state, "parts", None)
        if isinstance(parts, Parts):
            parts.loop.call_soon_threadsafe(parts.publisher.stop)


def main() -> None:
    """Serve."""
    configure_logging()
    try:
        where = ApiSettings.from_environment(os.environ)
        app = make_app(engine(), settings().redis_url, _wake_stop)
    except InvalidInputError as error:
        sys.exit(error.message)
    _compare_installation()
    config = uvicorn.Config(
        app,
        host=where.host,
        port=where.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=10,
    )
    with suppress(KeyboardInterrupt):  # uvicorn raises it again after it has ended in good order
        _Server(config, app).run()


def _compare_installation() -> None:
    """End this process when Redis is of another installation than the database, also when they answer later."""
    comparing = threading.Thread(target=begin, args=(None,), name="compare installation", daemon=True)
    comparing.start()
    comparing.join(_COMPARE_SECONDS)


def _exit_soon() -> None:
    """End this process soon, though a thread may wait for a Postgres or a name server that does not answer."""
    timer = threading.Timer(_EXIT_SECONDS, os._exit, (0,))
    timer.daemon = True
    timer.start()


def _wake_stop() -> None:
    waker().routes(RouteLifecycleType.STOP)


if __name__ == "__main__":
    main()
