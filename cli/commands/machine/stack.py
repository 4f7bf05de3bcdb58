"""`rollway up`, `rollway down`, and the restart of the stack's parts."""

import os
import sys
import time
from collections.abc import Collection
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from cli.options import Yes
from cli.show.urls import page_address
from cli.terminal.exits import STOPPED, ignore_signals, interruptible
from cli.terminal.output import print_json, printer, program
from cli.terminal.server_warnings import show_notes
from stack.down import down as stack_down
from stack.home.folder import Home, find_home
from stack.home.server_settings import Ports
from stack.membership import as_member
from stack.prepare import Notice, Say, UpRequest
from stack.stack_status import StackStatus, stack_status
from stack.supervisor.stop import running_replicas
from stack.up import restart as stack_restart
from stack.up import stay
from stack.up import up as stack_up

_PORT = {"min": 1, "max": 65535, "show_default": "a free one, kept for the next start"}
_FORWARDED = {"min": 0, "max": 65535, "show_default": "as at the last start, and none at first; 0 closes it"}

_GOOD = {"running", "done", "external", "kept", "restarted", "stopped", "already running", "all replicas have ended"}

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document at the end instead of lines.")]


_TAKEN_OVER = "Interrupted; what ran before runs on, and the rest comes up by itself."


def up(
    *,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of workers.", show_default="one for each core, at most 8")
    ] = None,
    foreground: Annotated[bool, typer.Option("--foreground", help="Stay, and stop everything on Ctrl-C.")] = False,
    postgres_port: Annotated[
        int | None, typer.Option(help="Open a port of the embedded PostgreSQL.", **_FORWARDED)
    ] = None,
    redis_port: Annotated[int | None, typer.Option(help="Open a port of the embedded Redis.", **_FORWARDED)] = None,
    discovery_port: Annotated[
        int | None, typer.Option(help="Open a port for Envoys of your own.", **_FORWARDED)
    ] = None,
    flower_port: Annotated[int | None, typer.Option(help="Port of Flower.", **_PORT)] = None,
    api_port: Annotated[int | None, typer.Option(help="Port of the server for proxies.", **_PORT)] = None,
    people_port: Annotated[int | None, typer.Option(help="Port of the HTTP API.", **_PORT)] = None,
    envoy_port: Annotated[int | None, typer.Option(help="Port of Envoy, where requests go.", **_PORT)] = None,
    tls_port: Annotated[int | None, typer.Option(help="Port of Envoy for HTTPS.", **_PORT)] = None,
    as_json: AsJson = False,
) -> None:
    """Start servers, workers, beat, Flower and Envoy here: all that one machine needs.

    DATABASE_URL and REDIS_URL in the environment replace PostgreSQL and Redis; ROLLWAY_ENVOY=off leaves Envoy out, and
    with ROLLWAY_ENVOY_HOST=:: it listens for callers from elsewhere too, as in
    'ROLLWAY_ENVOY_HOST=:: rollway up --envoy-port 80 --tls-port 443'.
    Data and logs are in .rollway, or in ROLLWAY_HOME. Harmless when it is all running already. What runs without its
    supervisor is taken over: what runs well is kept, and no request is lost. Where 'rollway hosts join' made a host,
    workers alone are started.
    """
    console = printer(quiet=as_json)
    say = sayer(console)
    forwarded = {"postgres": postgres_port, "redis": redis_port, "discovery": discovery_port}
    ports = Ports(
        flower=flower_port or 0,
        api=api_port or 0,
        people=people_port or 0,
        envoy=envoy_port or 0,
        envoy_tls=tls_port or 0,
        forwarded={name: port for name, port in forwarded.items() if port is not None},
    )
    request = UpRequest(home=find_home(os.environ), environ=os.environ, workers=workers, ports=ports)
    with interruptible(_TAKEN_OVER if stack_status(request.home).phase in {"lost", "serving"} else STOPPED):
        began = time.monotonic()
        status, seconds = _started(request, say), time.monotonic() - began
        if as_json:
            print_json({**asdict(status), "seconds": round(seconds, 2)})
        console.print(_ready(seconds, request.home, foreground=foreground))
        if foreground:
            stay_until_stopped(request.home, say)


def _started(request: UpRequest, say: Say) -> StackStatus:
    request, processes = as_member(request)
    return stack_up(request, say, processes)


def down(
    *,
    keep_replicas: Annotated[
        bool, typer.Option("--keep-replicas", help="Leave replicas and Envoy, which serve on until the next 'up'.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Stop everything that `up` started, and every replica. At a terminal it asks first.

    Envoy takes no new requests and those in flight end, within 11 s; then each replica has the grace of its revision,
    60 s at most. Deployments keep their size: the next 'rollway up' starts as many again. The data stays.
    """
    show_notes()
    home = find_home(os.environ)
    console = printer(quiet=as_json)
    count = running_replicas(home.root)
    if count and not keep_replicas and not yes and sys.stdin.isatty():
        _ask(count)
    ignore_signals()  # half of it stopped is worse than waiting for the rest
    was_running = stack_down(home, sayer(console), keep_replicas=keep_replicas)
    stopped = 0 if keep_replicas else count
    if as_json:
        print_json({"home": home.root, "was_running": was_running, "replicas": count, "stopped_replicas": stopped})
    elif not was_running and not stopped:
        console.print(f"Nothing is running in {home.root}.")
    elif keep_replicas:
        console.print(f"Envoy and {count} replicas serve on; 'rollway up' takes them over, 'rollway down' stops them.")


def restart_parts(parts: Collection[str], *, as_json: bool) -> None:
    """Restart these parts of this machine's stack; without any, all but Envoy."""
    home = find_home(os.environ)
    console = printer(quiet=as_json)
    began = time.monotonic()
    request, processes = as_member(UpRequest(home=home, environ=os.environ))
    status = stack_restart(request, parts, sayer(console), processes)
    seconds = time.monotonic() - began
    if as_json:
        print_json({**asdict(status), "seconds": round(seconds, 2)})
    console.print(f"Restarted after {seconds:.1f} s.")


def _ask(count: int) -> None:
    question = f"Stop all, and {count} replicas with it? (--keep-replicas leaves those serving)"
    if not typer.confirm(question, err=True):
        raise typer.Exit(1)


def _ready(seconds: float, home: Home, *, foreground: bool) -> str:
    stop = "Ctrl-C stops it" if foreground else f"stop it with '{program()} down'"
    files = f"Addresses with passwords: {home.state_file}; logs: {home.root / 'logs'}"
    page = f"The page: {page_address()}; 'rollway token create me --role operator' opens it."
    return f"Ready after {seconds:.1f} s; {stop}. {files}\n{page}"


def sayer(console: Console) -> Say:
    began = time.monotonic()

    def say(notice: Notice) -> None:
        good = notice.text in _GOOD
        mark, style = ("✔", "green") if good else ("!", "yellow")
        line = Text(f"{mark} {notice.part:<9} ", style)
        line.append(f"{notice.text:<10} {notice.address:<32} {time.monotonic() - began:5.1f} s", "default")
        console.print(line, soft_wrap=True)

    return say


def stay_until_stopped(home: Home, say: Say) -> None:
    try:
        stay(home, say)
    except KeyboardInterrupt:
        ignore_signals()  # a second Ctrl-C must not leave half of it running
        stack_down(home, say)
