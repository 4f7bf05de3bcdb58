"""Whether every thread of a running server still answers: its end and its main thread show nothing of the others."""

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from stack.home.server_settings import HOST

LOOK_SECONDS = 1.0
_MOST_LOOKS = 7
# The system gives each connection to one of the threads: so many miss one of two in one look out of sixteen.
_CONNECTIONS = 4
_REQUEST = f"GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode()
STUCK = f"it stood still: one of its threads has answered nothing for {_MOST_LOOKS * LOOK_SECONDS:g} s"


@dataclass(slots=True)
class _Question:
    """One connection that questions a thread. `looks`: the looks in which it had not answered."""

    connection: socket.socket
    is_sent: bool = False
    looks: int = -1

    def is_answered(self) -> bool:
        """Whether anything has come. The request is sent once the connection is there, on a busy machine later."""
        try:
            self.is_sent = self.is_sent or self.connection.send(_REQUEST) > 0
            self.connection.recv(1)
        except BlockingIOError:
            self.looks += 1
            return False
        except OSError:
            return True
        return True


@dataclass(slots=True)
class Watch:
    """Asks the server at a port of this machine, and never waits for it: an answer is read in a later look.

    Looks are counted, not seconds: where nothing of this machine runs, the server does not either. Whatever comes is an
    answer, also a connection that is closed: it shows that the thread took it.
    """

    port: int
    pause: float = LOOK_SECONDS
    is_stuck: bool = False
    _looked_at: float = 0.0
    _questions: list[_Question] = field(default_factory=list)

    def look(self) -> bool:
        """Read the answers and ask again, if the last look was long enough ago; whether the server is stuck."""
        now = time.monotonic()
        if now - self._looked_at < self.pause:
            return self.is_stuck
        self._looked_at = now
        self._questions += [_Question(self._connecting()) for _ in range(_CONNECTIONS)]
        self._drop([question for question in self._questions if question.is_answered()])
        self.is_stuck = any(question.looks >= _MOST_LOOKS for question in self._questions)
        return self.is_stuck

    def forget(self) -> None:
        """Start over, with another process."""
        self.is_stuck = False
        self._drop(list(self._questions))

    def _connecting(self) -> socket.socket:
        connection = socket.socket()
        connection.settimeout(0)
        connection.connect_ex((HOST, self.port))
        return connection

    def _drop(self, questions: Sequence[_Question]) -> None:
        for question in questions:
            self._questions.remove(question)
            question.connection.close()
