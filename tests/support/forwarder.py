"""A TCP proxy that can fall silent: it keeps its connections, and forwards nothing any more."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Forwarder:
    """Listens on `port` of 127.0.0.1 and forwards to another port there, as long as it `is_forwarding`."""

    def __init__(self, target: int) -> None:
        self._target = target
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

    def _run(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [near, far]
                self._run(self._forward, near, far)
                self._run(self._forward, far, near)

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self.is_forwarding.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


@contextmanager
def forwarder(target: int) -> Iterator[Forwarder]:
    """One for a test, gone at its end."""
    made = Forwarder(target)
    try:
        yield made
    finally:
        made.close()
