"""How long one replica takes to start when nobody looks on: the ideal that a rollout is held against."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from statistics import median
from typing import Any

import docker

from stack.home.server_settings import free_port
from tests.support.docker.busybox import IMAGE
from tests.support.stack.stack import ROOT

START_SECONDS = 1.0
"""What every replica waits before it is healthy."""

PROCESS: Mapping[str, Any] = {
    "command": [sys.executable, str(ROOT / "tools" / "bench" / "replica.py")],
    "env": {"STARTUP_SECONDS": str(START_SECONDS)},
    "health_check": {"interval_seconds": 0.5, "start_deadline_seconds": 30},
    "drain_seconds": 0,
}

_SERVES = f"sleep {START_SECONDS:g}; mkdir -p /www; echo ok > /www/health; exec httpd -f -p $PORT -h /www"
CONTAINER: Mapping[str, Any] = {
    "runtime": "docker",
    "command": ["/bin/sh", "-c", _SERVES],
    "docker": {"image": IMAGE, "pull": "never"},
    "health_check": {"path": "/health", "interval_seconds": 0.5, "start_deadline_seconds": 30},
    "drain_seconds": 0,
    "stop_grace_seconds": 1,
}
_TIMES = 3
_PORT = 8080


def process_seconds() -> float:
    """From the spawn until it answers that it is healthy: the median."""
    return median(_process() for _ in range(_TIMES))


def container_seconds(url: str) -> float:
    """From its creation, by the engine at `url`, until it answers that it is healthy: the median."""
    with docker.APIClient(base_url=url) as engine:
        return median(_container(engine) for _ in range(_TIMES))


def _process() -> float:
    port = free_port()
    environment = {**os.environ, **PROCESS["env"], "PORT": str(port)}
    began = time.monotonic()
    process = subprocess.Popen(PROCESS["command"], env=environment, stderr=subprocess.DEVNULL)
    try:
        return _until_healthy(("127.0.0.1", port)) - began
    finally:
        process.kill()
        process.wait()


def _container(engine: docker.APIClient) -> float:
    began = time.monotonic()
    made = engine.create_container(IMAGE, CONTAINER["command"], environment={"PORT": str(_PORT)})["Id"]
    try:
        engine.start(made)
        networks = engine.inspect_container(made)["NetworkSettings"]["Networks"].values()
        return _until_healthy((next(network["IPAddress"] for network in networks), _PORT)) - began
    finally:
        engine.remove_container(made, force=True, v=True)


def _until_healthy(address: tuple[str, int]) -> float:
    """The time at which it was."""
    while not _is_healthy(address):
        time.sleep(0.002)
    return time.monotonic()


def _is_healthy(address: tuple[str, int]) -> bool:
    with suppress(OSError), socket.create_connection(address, timeout=1) as connection:
        connection.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        return b" 200 " in connection.recv(4096)
    return False
