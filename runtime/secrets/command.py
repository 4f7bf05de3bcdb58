"""Reads what a program of this host prints, within a time and a size."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO


class CommandFaultError(Exception):
    """The program printed nothing that can be used; the message says why, and nothing of what it wrote."""


def printed_by(words: Sequence[str], environment: Mapping[str, str], most_bytes: int, seconds: float) -> bytes:
    """Return what it writes to its standard output, `most_bytes` and one at most. Raises CommandFaultError.

    Its standard error is thrown away, since a program that fails may write there what it was given or what it read.
    It is killed, with what it started, when it is not through in time or writes more.
    """
    try:
        process = subprocess.Popen(  # noqa: S603  # the host's owner has named the program
            words,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
    except (OSError, ValueError) as error:
        why = os.strerror(error.errno or 0) if isinstance(error, OSError) else "its arguments cannot be passed"
        raise CommandFaultError(f"the program cannot be run: {why}") from None
    with process:
        try:
            return _read(process, most_bytes, time.monotonic() + seconds)
        except TimeoutError:
            raise CommandFaultError(f"the program was not through within {seconds:g} s") from None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)


def _read(process: subprocess.Popen[bytes], most_bytes: int, ends_at: float) -> bytes:
    """Raises TimeoutError and CommandFaultError."""
    assert process.stdout is not None  # noqa: S101  (narrows the type; it was asked for)
    found = _read_until(process.stdout, most_bytes, ends_at)
    if len(found) > most_bytes:
        return found
    try:
        code = process.wait(max(0.0, ends_at - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    if code:
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        raise CommandFaultError(f"the program {how}; run it as the worker's user to see why")
    return found


def _read_until(output: IO[bytes], most_bytes: int, ends_at: float) -> bytes:
    found = b""
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while len(found) <= most_bytes:
            if not selector.select(max(0.0, ends_at - time.monotonic())):
                raise TimeoutError
            read = os.read(output.fileno(), most_bytes + 1 - len(found))
            if not read:
                break
            found += read
    return found
