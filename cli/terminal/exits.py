"""The end of a command: exit codes, refusals, Ctrl-C, and broken pipes."""

import codecs
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from io import TextIOWrapper
from types import FrameType
from typing import NoReturn, Self

import typer

from domain.installation.contract import UnfitServerError
from domain.text.errors import InvalidInputError, RollwayError


class ExitCode(IntEnum):
    """The code that the shell gets."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    UNREACHABLE = 3
    TIMED_OUT = 4
    DIFFERENT = 5
    WAITS_FOR_YOU = 6
    INTERRUPTED = 130


class UsageError(RollwayError):
    """The command line itself is wrong."""


class UnreachableError(RollwayError):
    """The stack is not running, or a server does not answer."""


class MigrationError(RollwayError):
    """The database is unchanged: Postgres refuses a migration."""

    code = "not_migrated"


class WaitTimedOutError(RollwayError):
    """--wait has waited long enough; the rollout continues."""


class WaitsForPersonError(RollwayError):
    """--wait has waited long enough, and the rollout waits for a person."""


class ElsewhereError(RollwayError):
    """The thing lies on another host, which the detail names."""

    code = "on_another_host"


class RolledBackError(RollwayError):
    """The rollout that --wait waited for did not end with its revision."""


class DegradedError(RollwayError):
    """Scaling gave up for now, and retries on its own."""


class FaultError(RollwayError):
    """An unforeseen fault of Rollway itself."""

    @classmethod
    def of(cls, error: Exception, variable: str) -> Self:
        """`variable`: of the environment, which shows where."""
        message = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}".rstrip(": ")
        return cls(f"this is a fault of Rollway's own, {message}; with {variable}=1 it shows where, for a report")


def exit_code(error: RollwayError) -> ExitCode:
    match error:
        case InvalidInputError() | UsageError():
            return ExitCode.USAGE
        case UnreachableError() | UnfitServerError():
            return ExitCode.UNREACHABLE
        case WaitTimedOutError():
            return ExitCode.TIMED_OUT
        case WaitsForPersonError():
            return ExitCode.WAITS_FOR_YOU
        case _:
            return ExitCode.REFUSED


def tell(error: RollwayError, *, as_json: bool) -> None:
    """Print a sentence to standard error; with --json a document to standard output, where a script reads."""
    if as_json:
        typer.echo(json.dumps({"error": error.as_json()}))
    else:
        from cli.terminal.output import printer  # noqa: PLC0415 -- rich takes a tenth of a second, which --help can save

        sentence = error.message if error.message.endswith((".", "!", "?", "'")) else f"{error.message}."
        printer(stderr=True).print(sentence, style="red")


def exits(*codes: ExitCode, example: str) -> str:
    """The end of a command's help: examples, and its exit codes."""
    lines = ["Examples:", *(f"  {line}" for line in example.splitlines())]
    meanings = [f"  {code.value:<3}  {MEANING[code]}" for code in sorted({ExitCode.DONE, *codes})]
    return "\b\n" + "\n".join(lines) + "\n\n\b\n" + "\n".join(["Exit codes:", *meanings])


MEANING = {
    ExitCode.DONE: "done",
    ExitCode.REFUSED: "refused or failed",
    ExitCode.USAGE: "wrong usage or input",
    ExitCode.UNREACHABLE: "stack or servers not reachable",
    ExitCode.TIMED_OUT: "--wait timed out",
    ExitCode.DIFFERENT: "the file differs from what is stored",
    ExitCode.WAITS_FOR_YOU: "--wait timed out, and the rollout waits for 'promote' or 'resume'",
    ExitCode.INTERRUPTED: "Ctrl-C",
}

STARTING: Sequence[ExitCode] = (ExitCode.REFUSED, ExitCode.USAGE, ExitCode.INTERRUPTED)
READING: Sequence[ExitCode] = (ExitCode.REFUSED, ExitCode.USAGE, ExitCode.UNREACHABLE)
WRITING: Sequence[ExitCode] = (*READING, ExitCode.INTERRUPTED)
WAITING: Sequence[ExitCode] = (*WRITING, ExitCode.TIMED_OUT, ExitCode.WAITS_FOR_YOU)


STOPPED = "Interrupted; everything that was started is stopped."

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interruptible(message: str = STOPPED) -> Iterator[None]:
    """The first signal raises KeyboardInterrupt; later ones are ignored, so that nothing cuts the clean-up short.

    A signal that is ignored already stays so: `nohup` and a script's background job want to outlive it. After an
    interrupted block, `message` tells that its clean-up is done.
    """

    def interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
        ignore_signals()
        raise KeyboardInterrupt

    numbers = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    except KeyboardInterrupt:
        from cli.terminal.output import printer  # noqa: PLC0415 -- see `tell`

        printer(stderr=True).print(message)
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ignore_signals() -> None:
    """Ignore all signals from now on, for the rest of the work."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


_HANDLER = "rollway.ascii"

_ASCII = {
    "■": "#",
    "□": "o",
    "△": "^",
    "▲": "!",
    "◇": "+",
    "✗": "x",
    "✓": "v",
    "✔": "v",
    "→": "->",
    "≤": "<=",
    "…": "...",
}
"""Characters in place of symbols, so that pictures still show each difference of a replica."""


def write_ascii_where_needed() -> None:
    """Write ASCII from now on; a stream of UTF-8 stays as it is."""
    codecs.register_error(_HANDLER, _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(errors=_HANDLER)


def close_quietly() -> None:
    """Ignore that nobody reads any more, as after `| head`: the rest is written to nobody."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unfit = error.object[error.start : error.end]
    return "".join(_ASCII.get(character, "?") for character in unfit), error.end
