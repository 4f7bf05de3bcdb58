"""The ports of one part, which nobody else gets while its supervisor lives."""

import errno
from typing import TYPE_CHECKING

from runtime.machine.ports import Address, joined
from stack.plan import StackPart

if TYPE_CHECKING:
    import socket

_WAITING = 256
"""Connections that wait while nobody serves them."""


class KeptPorts:
    """Sockets that share the addresses of a part. Each is bound once, and closed when the whole stack stops."""

    def __init__(self, part: StackPart) -> None:
        self._handed = part.listens
        self._addresses = (*([part.listens] if part.listens else []), *part.shares)
        self._sockets: dict[Address, socket.socket] = {}

    def keep(self) -> None:
        """Keep the addresses that are not kept yet. Raises OSError with a sentence where another user has one."""
        for host, port in (address for address in self._addresses if address not in self._sockets):
            try:
                self._sockets[host, port] = joined((host, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                raise OSError(f"port {port} on {host} is in use by another program") from error

    @property
    def descriptor(self) -> int | None:
        """The descriptor that the process is handed; None where it listens by itself."""
        return self._sockets[self._handed].fileno() if self._handed else None

    def let_wait(self) -> None:
        """Let callers wait for the next process instead of being refused."""
        if self._handed in self._sockets:
            self._sockets[self._handed].listen(_WAITING)

    def close(self) -> None:
        """Refuse callers: the part will not come back."""
        for kept in self._sockets.values():
            kept.close()
        self._sockets.clear()
