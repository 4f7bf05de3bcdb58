"""Sends a command: takes the caller's options, carries it out, prints what it did, and with --wait the rollout."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any
from uuid import UUID

import typer

from api.people.doors import DOORS
from cli.client import Reader, deployment_named, send
from cli.options import Actor, AsJson, Reason, RequestId
from cli.show.rollout_log import Goal, RolloutLog, wait_until
from cli.show.status import warn_of_doubts, warn_of_hosts_passed_over, warn_of_missing_worker
from cli.terminal.exits import UsageError
from cli.terminal.output import print_json, printer
from db.views.deployment_view import DeploymentView
from domain.commands.base import Command
from domain.commands.registry import parse_command
from domain.commands.rollout_commands import ActivateRevision, Restart, RollingUpdate

_BEGIN = (ActivateRevision, Restart, RollingUpdate)

Result = dict[str, Any]
"""The result of a command, as the commands of `db` answer."""


@dataclass(frozen=True, slots=True)
class Asker:
    """The caller of a change: name, reason, request id, and whether the answer is for a script."""

    reason: str
    actor: str
    request_id: str
    as_json: bool

    def command(self, kind: type[Command], /, **payload: object) -> Command:
        """The command with the caller's fields. Raises InvalidInputError."""
        how = {"reason": self.reason, "actor": self.actor, "request_id": self.request_id}
        return parse_command(kind.task, {**payload, **how})

    def send(self, kind: type[Command], /, **payload: object) -> Result:
        """Carry out a command and return what it did. Raises its refusals."""
        return send(self.command(kind, **payload))

    def say(self, sentence: str, result: Result) -> None:
        """Print the result of a command: for people in a sentence, for scripts as JSON."""
        if self.as_json:
            print_json(result)
        else:
            printer().print(sentence)


@dataclass(frozen=True, slots=True)
class OfAll:
    """The meaning of --all: `which` deployments in words, how they are found, and each outcome in words."""

    which: str
    is_meant: Callable[[DeploymentView], bool]
    payload: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verb:
    """A subcommand that sends one command to one deployment, such as `rollway pause web`: its class has the rest.

    `sentence`: what was done, for people. `goal`: what --wait waits for; without a goal there is no --wait.
    `called`: the options that are called otherwise than their fields. `question`: asked first unless --yes is given;
    {deployment} and {replicas} stand for the name and the number. `of_all`: what it does with --all in place of a name;
    None: it has no --all.
    """

    command: type[Command]
    sentence: Callable[[Result], str]
    goal: Goal | None = None
    called: Mapping[str, str] = field(default_factory=dict)
    question: str = ""
    of_all: OfAll | None = None


def option(name: str, kind: object, default: object = Parameter.empty) -> Parameter:
    """An option or argument for Typer. `kind`: a type annotated with its name and help."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


_OF_WHO_ASKS = (
    option("reason", Reason, ""),
    option("actor", Actor),
    option("request_id", RequestId),
    option("as_json", AsJson, default=False),
)


def asking(run: Callable[..., None]) -> Callable[..., None]:
    """Give a command that changes something the caller's options; it gets them as its argument `asker`."""

    @wraps(run)
    def with_options(*, reason: str, actor: str, request_id: str, as_json: bool, **fields: Any) -> None:  # noqa: ANN401
        run(asker=Asker(reason, actor, request_id, as_json), **fields)

    own = [parameter for parameter in signature(run).parameters.values() if parameter.name != "asker"]
    with_options.__signature__ = Signature([*own, *_OF_WHO_ASKS])  # type: ignore[attr-defined]  # functions have it
    return with_options


def carry_out(
    verb: Verb,
    asker: Asker,
    *,
    deployment: str,
    yes: bool = False,
    wait: bool = False,
    timeout: float = 0,
    **payload: object,
) -> None:
    """Send the verb's command, print the result, and wait if --wait is set. Raises its refusals."""
    console = printer(quiet=asker.as_json)
    with Reader() as reader:
        view = deployment_named(reader, deployment)
        if verb.question and not yes:
            _ask(verb.question.format(deployment=deployment, replicas=len(view.routes)), deployment)
        result = asker.send(verb.command, deployment=deployment, **payload)
        console.print(outcome(verb, result))
        warn_of_hosts_passed_over([result], console)
        if verb.command in _BEGIN:
            warn_of_doubts(reader, [deployment], console)
        warn_of_missing_worker(reader, console)
        if wait and verb.goal is not None:
            while result.get("noted"):  # with the same id: it is done once, and answered then
                result = asker.send(verb.command, deployment=deployment, **payload)
            rollout_id = result.get("rollout_id")
            film = RolloutLog(console, rollout_id=UUID(rollout_id) if rollout_id else None)
            if view.rollout is not None and view.rollout.id == film.rollout_id:
                film.last_step = view.rollout.steps  # what happened before was not asked for here
            current = wait_until(verb.goal, reader, deployment, timeout, film).deployment
            result = {**result, "state": str(current.lifecycle)}
    if asker.as_json:
        print_json(result)


def outcome(verb: Verb, result: Result) -> str:
    """The outcome in words: done, or noted until the deployment's lock is free."""
    if number := result.get("noted"):
        word = DOORS[verb.command].verb
        return f"{number}; '{word}' is noted, and comes first when that ends (seen within a second)"
    return verb.sentence(result)


def _ask(question: str, deployment: str) -> None:
    """Raises UsageError without a terminal, and typer.Exit when the answer is no."""
    if not sys.stdin.isatty():
        raise UsageError(f"destroying {deployment} asks first, and nobody is at the terminal to answer: add --yes")
    if not typer.confirm(question, err=True):
        raise typer.Exit(1)
