"""`rollway up` and `rollway down`."""

import os
import time
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from cli.interrupts import ignore_signals, interruptible
from cli.output import print_json, printer
from stack.down import down as stack_down
from stack.home import Home, find_home
from stack.parts.processes import default_workers
from stack.prepare import Notice, Say, UpRequest
from stack.settings import Ports
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
    console = printer(quiet=as_json)
    say = _sayer(console)
    request = UpRequest(
        home=find_home(os.environ),
        environ=os.environ,
        workers=workers or default_workers(),
        ports=Ports(
            postgres=postgres_port or 0,
            valkey=redis_port or 0,
            flower=flower_port or 0,
            api=api_port or 0,
            envoy=envoy_port or 0,
        ),
    )
    with interruptible():
        began = time.monotonic()
        status = stack_up(request, say)
        seconds = time.monotonic() - began
        if as_json:
            print_json({**asdict(status), "seconds": round(seconds, 2)})
        stop = "Ctrl-C stops it" if foreground else "stop it with 'rollway down'"
        files = f"Addresses with passwords: {request.home.state_file}; logs: {request.home.root / 'logs'}"
        console.print(f"Ready after {seconds:.1f} s; {stop}. {files}")
        if foreground:
            _stay_until_stopped(request.home, say)


def down(*, as_json: AsJson = False) -> None:
    """Stop everything that `up` started, and every replica.

    The data stays.
    """
    home = find_home(os.environ)
    console = printer(quiet=as_json)
    was_running = stack_down(home, _sayer(console))
    if as_json:
        print_json({"home": home.root, "was_running": was_running})
    elif not was_running:
        console.print(f"Nothing is running in {home.root}.")


def _sayer(console: Console) -> Say:
    began = time.monotonic()

    def say(notice: Notice) -> None:
        good = notice.text in {"running", "done", "external", "stopped", "already running"}
        mark, style = ("✔", "green") if good else ("!", "yellow")
        line = Text(f"{mark} {notice.part:<10}", style)
        line.append(f"{notice.text:<10} {notice.address:<32} {time.monotonic() - began:5.1f} s", "default")
        console.print(line, soft_wrap=True)

    return say


def _stay_until_stopped(home: Home, say: Say) -> None:
    try:
        stay(home, say)
    except KeyboardInterrupt:
        ignore_signals()  # a second Ctrl-C must not leave half of it running
        stack_down(home, say)
