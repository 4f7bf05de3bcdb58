"""A process watched by a supervisor that is not its parent: an earlier one started it, or it shall outlive this one."""

import signal
import subprocess
import time

from runtime.machine.identity import Identity, is_alive, send

_POLL = 0.02
_ENDED = 255  # its exit code is its parent's to know


class AdoptedProcess:
    """What a supervisor needs of a Popen, for a process that is nobody's child any more."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    def poll(self) -> int | None:
        """None while it runs."""
        return None if is_alive(self._identity) else _ENDED

    def wait(self, timeout: float) -> int:
        """Return when it has ended. Raises subprocess.TimeoutExpired."""
        deadline = time.monotonic() + timeout
        while is_alive(self._identity):
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("adopted", timeout)
            time.sleep(_POLL)
        return _ENDED

    def kill(self) -> None:
        """Send SIGKILL; nothing happens when it has ended."""
        send(self._identity, signal.SIGKILL)
