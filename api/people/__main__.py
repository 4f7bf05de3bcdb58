"""`python -m api.people`: the server for people and other services, until SIGTERM or Ctrl-C."""

from tasks.worker.garbage import collect_hardly

collect_hardly()

import os
import socket
import sys
from contextlib import suppress

import uvicorn
from starlette.applications import Starlette

from api.people.people_app import PeopleSettings, make_app
from api.serving import QuietServer, compare_installation, config, most_connections
from db.connection.transactions import engine
from domain.text.errors import InvalidInputError
from tasks.task_settings import settings
from tasks.telemetry.log import configure_logging


class _PeopleServer(QuietServer):
    """Ends the open streams on shutdown rather than waiting for their clients."""

    def __init__(self, config: uvicorn.Config, app: Starlette) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End, as uvicorn asks."""
        self._app.state.changes.end()
        await super().shutdown(sockets)


def main() -> None:
    configure_logging()
    try:
        where = PeopleSettings.from_environment(os.environ)
        app = make_app(engine(), settings().redis_url, where.rate)
    except InvalidInputError as error:
        sys.exit(error.message)
    compare_installation()
    with suppress(KeyboardInterrupt):  # uvicorn raises it again after it has ended in good order
        _PeopleServer(config(app, where.host, where.port, most_connections(), is_forwarded=True), app).run()


if __name__ == "__main__":
    main()
