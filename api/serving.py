"""How both servers are run: uvicorn with bounded connections, and whether Redis is of the same installation."""

import threading
from functools import partial
from typing import Any

import uvicorn
from starlette.applications import Starlette

from api.connections import ACCEPTED_AT_ONCE, LONGEST_HEAD, BoundedProtocol, Connections
from tasks.installation import begin

_COMPARE_SECONDS = 3.0


def config(app: Starlette, host: str, port: int, most: int, *, is_forwarded: bool) -> uvicorn.Config:
    """For one server, with `most` connections.

    `is_forwarded`: a proxy of this machine may say for whom it asks.
    """
    protocol: Any = partial(BoundedProtocol, connections=Connections(most))
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=protocol,
        backlog=ACCEPTED_AT_ONCE,
        h11_max_incomplete_event_size=LONGEST_HEAD,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=is_forwarded,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=10,
    )


def compare_installation() -> None:
    """End this process when Redis is of another installation than the database, also when they answer later."""
    comparing = threading.Thread(target=begin, args=(None,), name="compare installation", daemon=True)
    comparing.start()
    comparing.join(_COMPARE_SECONDS)
