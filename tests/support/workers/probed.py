"""Who is probed: real services, and sockets that say what they like."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from uuid import uuid4

from domain.revisions.health_check import HealthCheck
from runtime.probing.http1 import ProbeAnswer
from runtime.probing.probes import Prober, ProbeTarget
from runtime.process.process_runtime import ProcessRuntime
from runtime.protocol import Replica
from tests.support.workers.runtimes import HTTP_SERVICE, log_of, request

Replies = Callable[[str, str], bytes]
"""The reply of a server to a path, asked under a name."""
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def answer(address: str | None, **check: object) -> ProbeAnswer:
    assert address is not None
    target = ProbeTarget(uuid4(), address, HealthCheck.model_validate(check))
    with closing(Prober()) as prober:
        prober.submit([target])
        return prober.answers(10)[target.route_id]


@contextmanager
def secured(files: tuple[Path, Path]) -> Iterator[str]:
    """Answers each request with 200, by TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    context.set_alpn_protocols(["http/1.1"])
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    plain, _ = server.accept()
                    with suppress(OSError), context.wrap_socket(plain, server_side=True) as accepted:
                        accepted.recv(65536)
                        accepted.sendall(OK)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def service(runtime: ProcessRuntime, **env: str) -> Replica:
    replica = runtime.start(request(HTTP_SERVICE, env=env))
    log_of(runtime, replica.route_id, "listens")
    return replica


def post(replica: Replica, path: str) -> None:
    assert replica.address is not None
    connection = HTTPConnection(replica.address)
    connection.request("POST", path)
    assert connection.getresponse().status == 200
    connection.close()


@contextmanager
def counting() -> Iterator[tuple[str, list[socket.socket]]]:
    """A server that accepts and never says a word, and the connections that were made to it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections: list[socket.socket] = []

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connections.append(server.accept()[0])

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}", connections
        server.shutdown(socket.SHUT_RDWR)
        for connection in connections:
            connection.close()


@contextmanager
def says(reply: bytes | None) -> Iterator[str]:
    """A server that sends `reply` to every connection and closes it; None: accepts and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(reply or b"")

        if reply is not None:
            threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


@contextmanager
def replying(replies: Replies, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """A server that replies as `replies` says, to many at once."""

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), tls.wrap_socket(connection, server_side=True) if tls else connection as caller:
            lines = caller.recv(65536).decode("latin-1").split("\r\n")
            named = next((line[6:] for line in lines if line.lower().startswith("host: ")), "")
            path = "".join(lines[0].split(" ")[1:2])  # who only looks whether there is TLS asks for none
            caller.sendall(replies(path, named))

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
