"""Servers that treat their connections well or badly, and a load that is sent to them."""

import asyncio
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from cli.demo.load.generator import Generator, LoadSettings
from cli.demo.load.mix import Kind
from cli.demo.load.tally import LoadReport, PhaseReport

GOOD = b'{"revision": "v1"}'
Treatment = Callable[[socket.socket], None]


@contextmanager
def server(treat: Treatment) -> Iterator[str]:
    """A server that treats each connection so, in a thread of its own; its address."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:

        def treat_one(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                treat(connection)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    threading.Thread(target=treat_one, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def requests(connection: socket.socket) -> Iterator[bytes]:
    """The heads of the requests on a connection; bodies are read and dropped."""
    unread = b""
    while data := connection.recv(65536):
        unread += data
        while b"\r\n\r\n" in unread:
            head, _, unread = unread.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: *(\d+)", head.lower())
            left = int(length[1]) if length else 0
            while len(unread) < left:
                unread += connection.recv(65536)
            unread = unread[left:]
            yield head


def reply(status: str = "200 OK", body: bytes = GOOD, length: int | None = None) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n".encode() + body


def always(answer: bytes) -> Treatment:
    def treat(connection: socket.socket) -> None:
        for _ in requests(connection):
            connection.sendall(answer)

    return treat


def truncate(connection: socket.socket) -> None:
    for _ in requests(connection):
        connection.sendall(reply(length=1000))
        return


def hang(connection: socket.socket) -> None:
    for _ in requests(connection):
        pass


def reset(connection: socket.socket) -> None:
    for _ in requests(connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        return


def load(
    address: str, kind: Kind = Kind.GET, *, rate: float = 50, seconds: float = 0.4, timeout: float = 5
) -> PhaseReport:
    settings = LoadSettings(
        address=address, host="web", rate=rate, seconds=seconds, timeout=timeout, connections=4, mix={kind: 1.0}
    )
    return asyncio.run(run(settings))


async def run(settings: LoadSettings) -> PhaseReport:
    return whole(await Generator(settings).run())


def whole(report: LoadReport) -> PhaseReport:
    (phase,) = report.phases
    assert phase.requests == phase.answered + sum(phase.failed.values())
    return phase
