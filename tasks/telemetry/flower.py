"""`python -m tasks.telemetry.flower`: Flower, at the socket that is kept for it where there is one.

Between two of its processes nobody else gets its port, and with it the password that a browser sends.
"""

import os
import socket
import sys

import flower.app
from celery.__main__ import main as celery

from runtime.machine.free_ports import handed_socket

_WAITING = 128


def main() -> None:
    """Run Celery's command, with the options of Flower."""
    listener = handed_socket(os.environ)
    if listener is not None:
        listener.settimeout(0)
        listener.listen(_WAITING)

        def _bind_sockets(*_: object, **__: object) -> list[socket.socket]:
            return [listener]

        flower.app.bind_sockets = _bind_sockets
    sys.argv[1:1] = ["-A", "tasks.app", "flower"]
    celery()


if __name__ == "__main__":
    main()
