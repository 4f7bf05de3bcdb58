"""`rollway up` and `rollway down`."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from cli.exits import ExitCode
from cli.interrupts import ignore_signals, interruptible
from stack.down import down as stack_down
from stack.errors import StackError
from stack.home import Home, find_home
from stack.parts.processes import default_workers
from stack.prepare import Notice, Say, UpRequest
from stack.settings import AskedPorts
from stack.status import StackStatus
from stack.up import stay
from stack.up import up as stack_up

_PORT = {"min": 1, "max": 65535, "show_default": "a free one, kept for the next start"}

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document at the end instead of lines.")]


def up(
    *,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of workers.", show_default="one for each core, at most 8")
    ] = None,
    foreground: Annotated[bool, typer.Option("--foreground", help="Stay, and stop everything on Ctrl-C.")] = False,
    postgres_port: Annotated[int | None, typer.Option(help="Port of the embedded PostgreSQL.", **_PORT)] = None,
    redis_port: Annotated[int | None, typer.Option(help="Port of the embedded Redis.", **_PORT)] = None,
    flower_port: Annotated[int | None, typer.Option(help="Port of Flower.", **_PORT)] = None,
    api_port: Annotated[int | None, typer.Option(help="Port of the server that tells proxies.", **_PORT)] = None,
    envoy_port: Annotated[int | None, typer.Option(help="Port of Envoy, where requests go.", **_PORT)] = None,
    as_json: AsJson = False,
) -> None:
    """Start PostgreSQL, Redis, workers, beat, Flower, the xDS server and Envoy here.

    DATABASE_URL and REDIS_URL in the environment replace the first two; ROLLWAY_ENVOY=off leaves Envoy out.
    Data and logs are in .rollway, or in ROLLWAY_HOME. Harmless when it is all running already.
    """
    console = Console(quiet=as_json)
    say = _sayer(console)
    request = UpRequest(
        home=find_home(os.environ),
        environ=os.environ,
        workers=workers or default_workers(),
        ports=AskedPorts(postgres=postgres_port, redis=redis_port, flower=flower_port, api=api_port, envoy=envoy_port),
    )
    with interruptible(), _told_in_one_sentence(as_json=as_json):
        started = time.monotonic()
        status = stack_up(request, say)
        seconds = time.monotonic() - started
        if as_json:
            typer.echo(json.dumps({**_document(status), "seconds": round(seconds, 2)}))
        _print_end(console, request.home, seconds, foreground=foreground)
        if foreground:
            _stay_until_stopped(request.home, say)


def down(*, as_json: AsJson = False) -> None:
    """Stop everything that `up` started, and every replica.

    The data stays.
    """
    home = find_home(os.environ)
    console = Console(quiet=as_json)
    with _told_in_one_sentence(as_json=as_json):
        was_running = stack_down(home, _sayer(console))
    if as_json:
        typer.echo(json.dumps({"home": str(home.root), "was_running": was_running}))
    elif not was_running:
        console.print(f"Nothing is running in {home.root}.", highlight=False, soft_wrap=True)


def _sayer(console: Console) -> Say:
    begun = time.monotonic()

    def say(notice: Notice) -> None:
        good = notice.text in {"running", "done", "external", "stopped", "already running"}
        mark, style = ("✔", "green") if good else ("!", "yellow")
        line = Text(f"{mark} {notice.part:<10}", style)
        line.append(f"{notice.text:<10} {notice.address:<32} {time.monotonic() - begun:5.1f} s", "default")
        console.print(line, soft_wrap=True)

    return say


def _print_end(console: Console, home: Home, seconds: float, *, foreground: bool) -> None:
    stop = "Ctrl-C stops it" if foreground else "stop it with 'rollway down'"
    console.print(
        f"Ready after {seconds:.1f} s; {stop}. Addresses with passwords: {home.state_file}; logs: {home.root / 'logs'}",
        highlight=False,
        soft_wrap=True,
    )


def _document(status: StackStatus) -> dict[str, object]:
    return {**asdict(status), "home": str(status.home)}


def _stay_until_stopped(home: Home, say: Say) -> None:
    try:
        stay(home, say)
    except KeyboardInterrupt:
        ignore_signals()  # a second Ctrl-C must not leave half of it running
        stack_down(home, say)


@contextmanager
def _told_in_one_sentence(*, as_json: bool) -> Iterator[None]:
    try:
        yield
    except StackError as error:
        if as_json:
            typer.echo(json.dumps({"error": {"code": "stack", "message": str(error), "detail": {}}}))
        else:
            Console(stderr=True).print(Text(f"✘ {error}", "red"), soft_wrap=True)
        raise typer.Exit(ExitCode.REFUSED) from error
    except KeyboardInterrupt:
        Console(stderr=True).print("Interrupted; everything that was started is stopped.")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
