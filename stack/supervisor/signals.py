"""Wakes the supervisor: when a child ends, and on a request to stop."""

import os
import signal
from collections.abc import Callable


def wakeup_on_signals(stop: Callable[[], None]) -> int:
    """A descriptor that becomes readable when a child ends or a signal comes; SIGTERM also calls `stop`."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda *_: stop())
    # handlers and not SIG_IGN: children would inherit that
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return reader
