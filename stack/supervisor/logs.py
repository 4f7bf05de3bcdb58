"""The logs of the stack, kept small while they are written."""

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from domain.installation.log_limits import LogLimits
from runtime.machine.log_files import rotate
from stack.supervisor.child.supervised import Child

_LOOK_SECONDS = 10.0


class Logs:
    """The logs of the parts, and the supervisor's own."""

    def __init__(self, own: Path) -> None:
        self._own = own
        self._limits = LogLimits.from_environment(os.environ)
        self._looked_at = 0.0

    def keep_small(self, children: Iterable[Child]) -> None:
        """Begin those anew that are too big, if the last look was some time ago."""
        if time.monotonic() - self._looked_at < _LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        with suppress(OSError):  # a log that cannot be cut must not end the stack; the next look tries again
            rotate(self._own, self._limits)
            for child in children:
                child.keep_log_small(self._limits)
