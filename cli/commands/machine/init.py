"""`rollway init`: five questions, one replica tried, and the file for `rollway apply`."""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from cli.apply import documents_in
from cli.commands.machine.trial import Ground, NotHealthyError, Tried, try_replica
from cli.options import AsJson
from cli.terminal.exits import UsageError
from cli.terminal.output import print_json, printer
from domain.commands.apply.document import RevisionSection
from domain.commands.apply.templates import HTTP_SERVICE, filled
from domain.text.errors import InvalidInputError
from domain.text.storable import DEPLOYMENT_NAME_PATTERN
from stack.home.folder import find_home

_MOST_NAME = 54
_NUMBER = re.compile(r"(?<!\d)\d{4,5}(?!\d)")

_CHECK = re.compile("^  health_check:\n(    .*\n)+", re.MULTILINE)


def init(
    *,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the deployment.")] = None,
    command: Annotated[str | None, typer.Option(metavar="COMMAND", help="What starts it, in this folder.")] = None,
    port: Annotated[
        str | None,
        typer.Option(metavar="PORT|NUMBER", help="PORT: it reads that variable; else the port in its command."),
    ] = None,
    health: Annotated[str | None, typer.Option(metavar="PATH|-", help="What answers 200 when it is well.")] = None,
    replicas: Annotated[int | None, typer.Option(min=1, max=10_000, help="How many.")] = None,
    to: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to; NAME.yaml if left out.")] = None,
    untried: Annotated[bool, typer.Option("--untried", help="Write it without a test start.")] = False,
    patience: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="How long the try may take.")] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Write the file of a service, after a test start here.

    Prompts for anything not given as an option. Starts one replica for a moment, and writes the file if the replica is
    healthy.
    """
    ask = _asker(as_json=as_json)
    name = ask(name, "Name", _name_of(Path.cwd()), _checked_name)
    file = to or Path(f"{name}.yaml")
    if file.exists():
        raise UsageError(f"{file} exists, and is left as it is: --to names another file")
    command = ask(command, "Command that starts it, in this folder", None, _checked_command)
    command = _with_port(command, port, ask)
    health = ask(health, "Path that answers 200 when it is well, - for none", "/", _checked_path)
    count = replicas or int(ask(None, "Replicas", "2", _checked_count))
    text = f"# rollway apply -f {file} --wait\n{_body(name, count, command, health)}"
    tried = None if untried else _tried(text, file, patience)
    with file.open("x", encoding="utf-8") as stream:
        stream.write(text)
    if as_json:
        seconds, user = (round(tried.seconds, 2), tried.user) if tried else (None, None)
        return print_json({"file": str(file), "healthy_after_seconds": seconds, "user": user})
    well = f"; one replica was healthy here after {tried.seconds:.1f} s, as {tried.user}" if tried else ""
    printer().print(f"{file} is written{well}.")
    return printer().print(f"Next: 'rollway up', where nothing runs yet, and 'rollway apply -f {file} --wait'.")


def _body(name: str, replicas: int, command: str, health: str) -> str:
    """The template of an HTTP service; without a health check where that is -."""
    text = _CHECK.sub("", HTTP_SERVICE.text) if health == "-" else HTTP_SERVICE.text
    return filled(text, {"deployment: ": name, "replicas: ": replicas, "  command: ": command, "    path: ": health})


_HOW = "Its port: PORT, when it reads that variable; else the number that is the port in its command"
Ask = Callable[[str | None, str, str | None, Callable[[str], str]], str]


def _asker(*, as_json: bool) -> Ask:
    asks = sys.stdin.isatty() and not as_json

    def ask(value: str | None, question: str, default: str | None, check: Callable[[str], str]) -> str:
        """The given value, else the answer to the question; the default without a terminal. Raises UsageError."""
        if value is None and asks:
            return str(typer.prompt(question, default=default, value_proc=check, err=True))
        if value is None and default is None:
            raise UsageError("nobody is at the terminal to answer: add --command")
        try:
            return check(value if value is not None else default or "")
        except typer.BadParameter as fault:
            raise UsageError(fault.message) from None

    return ask


def _with_port(command: str, port: str | None, ask: Ask) -> str:
    """The command with {port} in place of the number."""
    if "{port}" in command:
        return command
    number = _NUMBER.search(command)
    answer = ask(port, _HOW, number[0] if number else "PORT", lambda text: _checked_port(text, command))
    return command if answer == "PORT" else command.replace(answer, "{port}")


def _name_of(folder: Path) -> str:
    """A valid name from the folder's."""
    return re.sub(r"[^a-z0-9.-]+", "-", folder.name.lower())[:_MOST_NAME].strip("-.") or "web"


def _checked_name(text: str) -> str:
    if not re.fullmatch(DEPLOYMENT_NAME_PATTERN, text):
        raise typer.BadParameter(f"{text!r} must be lower-case letters, digits, '-' and '.', {_MOST_NAME} at most")
    return text


def _checked_command(text: str) -> str:
    try:
        RevisionSection.model_validate({"command": text})
    except ValidationError as error:
        raise typer.BadParameter(InvalidInputError.of(error, model=RevisionSection).message) from None
    return text


def _checked_port(text: str, command: str) -> str:
    if text != "PORT" and not (text.isdigit() and text in command):
        raise typer.BadParameter(f"{text!r} is neither PORT nor a number in {command!r}")
    return text


def _checked_path(text: str) -> str:
    if text != "-" and not re.fullmatch(r"/[^\s{}\[\],#]*", text):
        raise typer.BadParameter(f"{text!r} must be a path such as /healthz, or - for none")
    return text


def _checked_count(text: str) -> str:
    if not text.isdigit() or not int(text):
        raise typer.BadParameter(f"{text!r} must be a number of replicas, such as 2")
    return text


def _tried(text: str, file: Path, patience: float) -> Tried:
    """Raises NotHealthyError."""
    (document,) = documents_in(text, str(file), file.resolve().parent)
    if document.revision is None:
        raise TypeError("the text has a revision")
    printer(stderr=True).print("One replica is tried …")
    try:
        ground = Ground.here(find_home(os.environ), os.environ)
        return try_replica(document.deployment, document.revision.spec, patience, ground)
    except NotHealthyError as error:
        raise NotHealthyError(f"{error.message}; nothing is written, --untried writes it anyway") from None
