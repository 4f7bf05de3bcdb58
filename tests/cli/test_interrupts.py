"""Which signals end a command that must clean up."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from signal import SIG_DFL, SIG_IGN, SIGHUP, SIGINT, SIGTERM, Handlers, Signals

import pytest

from stack.home.folder import project_root

ECHO = """
import signal, sys
from cli.terminal.exits import interruptible
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, int(sys.argv[1]))
try:
    with interruptible():
        for line in sys.stdin:
            print(line, end="", flush=True)
except KeyboardInterrupt:
    print("cleaned up", flush=True)
"""


@contextmanager
def echo(before: Handlers) -> Iterator[subprocess.Popen[str]]:
    """A command that echoes until it is interrupted; `before` is what it found set for every signal."""
    program = [sys.executable, "-c", ECHO, str(before.value)]
    with subprocess.Popen(
        program, cwd=project_root(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert says(running, "hello\n") == "hello\n"
        yield running
        running.kill()


def says(running: subprocess.Popen[str], line: str = "") -> str:
    assert running.stdin
    assert running.stdout
    running.stdin.write(line)
    running.stdin.flush()
    return running.stdout.readline()


def wake(running: subprocess.Popen[str]) -> None:
    """End the read that a command began just after the signal: Python looks for signals before it, and then waits."""
    assert running.stdin
    with suppress(BrokenPipeError):
        os.write(running.stdin.fileno(), b"\n")


@pytest.mark.parametrize("number", [SIGINT, SIGTERM, SIGHUP])
def test_a_signal_lets_a_command_clean_up(number: Signals) -> None:
    with echo(SIG_DFL) as running:
        running.send_signal(number)
        wake(running)
        assert says(running) == "cleaned up\n"


@pytest.mark.parametrize("number", [SIGINT, SIGTERM, SIGHUP])
def test_a_signal_that_was_ignored_from_the_start_stays_ignored(number: Signals) -> None:
    with echo(SIG_IGN) as running:
        running.send_signal(number)
        assert says(running, "still here\n") == "still here\n"
