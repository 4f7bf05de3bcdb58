"""A TCP proxy that can fall silent, keeping its connections, change a word of what the server says, and count turns."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Forwarder:
    """Listens on `port` of 127.0.0.1 and forwards to another port there, as long as it `is_forwarding`.

    `said`: what the server says, and what is heard instead, which must be as long. `turns`: how often the server has
    answered, which of one connection that waits for each answer are its round trips.
    """

    def __init__(self, target: int, said: tuple[bytes, bytes] = (b"", b"")) -> None:
        self._target = target
        self._said = said
        self._is_asked = False
        self.turns = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = [self._listener]
        self._threads: list[threading.Thread] = []
        self.port = int(self._listener.getsockname()[1])
        self.is_forwarding = threading.Event()
        self.is_forwarding.set()
        self._run(self._accept)

    def close(self) -> None:
        """End every connection and every thread."""
        self.is_forwarding.set()
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(10)

    def _run(self, work: object, *arguments: object, **more: object) -> None:
        thread = threading.Thread(target=work, args=arguments, kwargs=more, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [near, far]
                self._run(self._forward, near, far, (b"", b""), asks=True)
                self._run(self._forward, far, near, self._said, asks=False)

    def _forward(self, source: socket.socket, sink: socket.socket, said: tuple[bytes, bytes], *, asks: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self.is_forwarding.wait()
                self.turns += self._is_asked and not asks
                self._is_asked = asks
                sink.sendall(data.replace(*said) if said[0] else data)
            sink.shutdown(socket.SHUT_WR)


@contextmanager
def forwarder(target: int, said: tuple[bytes, bytes] = (b"", b"")) -> Iterator[Forwarder]:
    """One for a test, gone at its end."""
    made = Forwarder(target, said)
    try:
        yield made
    finally:
        made.close()
