"""Ctrl-C, SIGTERM and a closed terminal, all as KeyboardInterrupt, for commands that must clean up."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from cli.terminal.output import printer

STOPPED = "Interrupted; everything that was started is stopped."

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interruptible(said: str = STOPPED) -> Iterator[None]:
    """The first signal raises KeyboardInterrupt; later ones are ignored, so that nothing cuts the clean-up short.

    A signal that is ignored already stays so: `nohup` and a script's background job want to outlive it. After an
    interrupted block, `said` tells that its clean-up is done.
    """

    def interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
        ignore_signals()
        raise KeyboardInterrupt

    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heard}
    try:
        yield
    except KeyboardInterrupt:
        printer(stderr=True).print(said)
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ignore_signals() -> None:
    """From now on nothing interrupts what is left to do."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
