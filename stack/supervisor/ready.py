"""Whether a part does its work, found out cheaply."""

import socket
from pathlib import Path
from urllib.parse import urlsplit

from stack.plan import Ready
from stack.ports import HOST


def is_ready(ready: Ready, log: Path, log_start: int) -> bool:
    """Whether the condition holds now; `log_start` is where in the log this run of the part began."""
    match ready.kind:
        case "redis":
            return _redis(ready.target)
        case "port":
            return _port(int(ready.target))
        case "http":
            return _http(ready.target)
        case "log":
            return _says(log, log_start, ready.target.encode())
        case "exit":
            return False


def _redis(url: str) -> bool:
    """Two commands by hand: the client library costs the supervisor, which every start waits for, half a second."""
    server = urlsplit(url)
    try:
        with socket.create_connection((server.hostname, server.port), timeout=1) as connection:
            connection.sendall(f"AUTH {server.password}\r\nPING\r\n".encode())
            said = b""
            while b"PONG" not in said and (more := connection.recv(512)):
                said += more
            return b"PONG" in said
    except OSError:
        return False


def _port(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def _http(url: str) -> bool:
    """By hand, too: the first line of the answer says enough."""
    asked = urlsplit(url)
    try:
        with socket.create_connection((asked.hostname, asked.port), timeout=1) as connection:
            connection.sendall(
                f"GET {asked.path} HTTP/1.1\r\nHost: {asked.netloc}\r\nConnection: close\r\n\r\n".encode()
            )
            said = b""
            while b"\r\n" not in said and (more := connection.recv(512)):
                said += more
    except OSError:
        return False
    return said.split(b" ")[1:2] == [b"200"]


def _says(log: Path, start: int, text: bytes) -> bool:
    try:
        with log.open("rb") as file:
            file.seek(start)
            return text in file.read()
    except OSError:
        return False
