"""Whether a part is ready, checked cheaply."""

import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from stack.home.folder import connected
from stack.home.settings import HOST
from stack.plan import Ready

Connect = Callable[[], socket.socket]


def is_ready(ready: Ready, log: Path, log_start: int) -> bool:
    """Whether the condition holds now; `log_start` is where in the log this run of the part began."""
    match ready.kind:
        case "redis":
            return _redis(ready.target)
        case "port":
            return _port(int(ready.target))
        case "http":
            return _http(ready.target)
        case "unix":
            path, _, page = ready.target.rpartition(":")
            return _http(f"http://{HOST}{page}", lambda: connected(Path(path), timeout=1))
        case "log":
            return _log_contains(log, log_start, ready.target.encode())
        case "exit":
            return False


def _redis(url: str) -> bool:
    server = urlsplit(url)
    connect = _to(server) if server.hostname else partial(connected, Path(unquote(server.path)), timeout=1)
    return b"PONG" in _answer(connect, f"AUTH {server.password}\r\nPING\r\n", until=b"PONG")


def _http(url: str, connect: Connect | None = None) -> bool:
    server = urlsplit(url)
    request = f"GET {server.path} HTTP/1.1\r\nHost: {server.netloc}\r\nConnection: close\r\n\r\n"
    return _answer(connect or _to(server), request, until=b"\r\n").split(b" ")[1:2] == [b"200"]


def _to(server: SplitResult) -> Connect:
    return partial(socket.create_connection, (server.hostname, server.port), timeout=1)


def _answer(connect: Connect, request: str, until: bytes) -> bytes:
    """Return what the server answers, read up to these bytes; empty when it does not answer.

    A client library would cost the supervisor, which every start waits for, half a second.
    """
    answer = b""
    try:
        with connect() as connection:
            connection.sendall(request.encode())
            while until not in answer and (more := connection.recv(512)):
                answer += more
    except OSError:
        return b""
    return answer


def _port(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def _log_contains(log: Path, start: int, text: bytes) -> bool:
    try:
        with log.open("rb") as file:
            file.seek(start)
            return text in file.read()
    except OSError:
        return False
