"""`/metrics` of a worker or a beat, on a port of its own: one scrape at a time, in a thread of its own."""

import os
import shutil
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import structlog
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from runtime.machine.free_ports import Address, handed_socket
from tasks.task_settings import TaskSettings, settings
from tasks.telemetry.task_metrics import HOME_FREE, HOME_SIZE, REGISTRY, TaskCounts

_CLIENT_SECONDS = 2.0
"""The seconds that one client may take for its question and our answer; meanwhile the next one waits."""
_TRY_AGAIN_SECONDS = 5.0
_LOOK_SECONDS = 60.0
"""How often it looks whether somebody has asked it to end, which nobody does."""
_log = structlog.get_logger(__name__)
_counts: list[TaskCounts] = []
"""Celery forgets the receivers of its signals that nobody keeps."""


class _MetricsPage(BaseHTTPRequestHandler):
    """GET /metrics, and nothing else."""

    server_version, sys_version = "Rollway", ""

    def do_GET(self) -> None:
        """Answer with the text that Prometheus reads."""
        is_metrics = self.path.partition("?")[0] == "/metrics"
        body = generate_latest(REGISTRY) if is_metrics else b"There is /metrics here, and nothing else.\n"
        self.send_response(200 if is_metrics else 404)
        self.send_header("Content-Type", CONTENT_TYPE_LATEST if is_metrics else "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Scrapes are not worth a line."""


class _MetricsServer(HTTPServer):
    """Serves one client after the other, and none for long: a slow client delays scrapes, and no work."""

    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  (the standard library's)
        """Serve one client; its connection is cut when its time is up."""
        request.settimeout(_CLIENT_SECONDS)
        cut = threading.Timer(_CLIENT_SECONDS, request.close)
        cut.daemon = True
        cut.start()
        try:
            super().finish_request(request, client_address)
        finally:
            cut.cancel()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  (the standard library's)
        """A client that went away or was cut is not worth a line."""


def expose(where: TaskSettings) -> threading.Thread | None:
    """Serve /metrics from a thread until this process ends, where a port is set."""
    if where.metrics_port is None:
        return None
    HOME_FREE.set_function(lambda: shutil.disk_usage(where.home).free)
    HOME_SIZE.set_function(lambda: shutil.disk_usage(where.home).total)
    address, listener = (where.metrics_host, where.metrics_port), handed_socket(os.environ)
    thread = threading.Thread(target=_serve, args=(address, listener), name="metrics", daemon=True)
    thread.start()
    return thread


def _serve(address: Address, listener: socket.socket | None) -> None:
    is_told = False
    while True:
        try:
            server = _MetricsServer(address, _MetricsPage, bind_and_activate=listener is None)
        except OSError as error:  # perhaps the worker before this one has not gone yet
            if not is_told:
                _log.error(
                    "no metrics until ROLLWAY_METRICS_PORT is free; each worker of a machine needs a port of its own",
                    port=address[1],
                    error=str(error),
                )
            is_told = True
            time.sleep(_TRY_AGAIN_SECONDS)
        else:
            if listener is not None:
                server.socket.close()
                server.socket = listener
                server.server_activate()
            server.serve_forever(poll_interval=_LOOK_SECONDS)


def show_metrics(hostname: str) -> TaskCounts:
    """Count this process's tasks from now on, and serve what it measures. `hostname`: how it calls itself."""
    counts = TaskCounts(hostname)
    counts.connect()
    _counts.append(counts)
    expose(settings())
    return counts
