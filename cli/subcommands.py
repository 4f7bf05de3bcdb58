"""The functions that Typer registers for verbs: help, options and example come from the command's class."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, Literal, get_origin

import typer

from api.people.doors import DOORS
from cli.client import Reader, existing_deployments
from cli.completion import deployments_offered, revisions_offered
from cli.options import WAIT_SECONDS, DeploymentName, Timeout, Wait, Yes
from cli.sending import Asker, OfAll, Result, Verb, asking, carry_out, option, outcome
from cli.terminal.exits import UnreachableError, UsageError, tell
from cli.terminal.output import print_json
from domain.commands.base import Command
from domain.commands.fields import CommandField, Kind, fields_of
from domain.commands.registry import COMMANDS
from domain.text.errors import RollwayError

_NameOrAll = Annotated[
    str | None,
    typer.Argument(
        metavar="[DEPLOYMENT]",
        help="Name of the deployment.",
        show_default=False,
        autocompletion=deployments_offered,
    ),
]


_TYPES: Mapping[Kind, type] = {"integer": int, "number": float, "boolean": bool, "words": list[str]}


def verb_of(name: str) -> Verb:
    """A verb with nothing but its class."""
    command = next(command for command in COMMANDS.values() if DOORS[command].verb == name)
    return Verb(command, lambda result: f"{result['deployment']}: {name}{' already' if result['already'] else ''}")


def example_of(verb: Verb) -> str:
    """The command with its required fields, from the example of its class; and with --all, where it exists."""
    door, example = DOORS[verb.command], verb.command.example
    needed = [shlex.quote(str(field.example)) for field in fields_of(verb.command) if field.is_needed]
    why = ["--reason", shlex.quote(example["reason"])] if "reason" in example else []
    words = ["rollway", door.verb, "web", *needed, *why, *(["--yes"] if verb.question else [])]
    for_all = [" ".join(["rollway", door.verb, "--all", *why])] if verb.of_all else []
    return "\n".join([" ".join([*words, *(["--wait"] if verb.goal else [])]), *for_all])


def _option_of(field: CommandField, called: Mapping[str, str]) -> Parameter:
    """A required field is an argument, another one an option; `called`: its name where it differs from the field's."""
    kind: Any = Literal[field.choices] if field.choices else _TYPES.get(field.kind, str)
    bounds = {"min": field.least, "max": field.most} if field.kind in ("integer", "number") else {}
    names = {"autocompletion": revisions_offered} if field.names == "revision" else {}
    is_shown = field.default is not None and bool(bounds)
    options: dict[str, Any] = {"help": field.meaning, "show_default": is_shown, **bounds, **names}
    metavar = (field.name.removesuffix("s") if field.kind == "words" else field.name).upper()
    if field.is_needed:
        return option(field.name, Annotated[kind, typer.Argument(metavar=metavar, **options)])
    typed = called.get(field.name, f"--{field.name.replace('_', '-')}")
    if field.kind == "boolean":
        return option(field.name, Annotated[kind, typer.Option(typed, **options)], field.default)
    options["metavar"] = None if field.choices else metavar
    if field.kind == "words":
        options["help"] += " May be repeated."
    return option(field.name, Annotated[kind | None, typer.Option(typed, **options)], field.default)


def sends(command: type[Command], **called: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a function the options of a command and of its caller; it gets the values as arguments, next to `asker`.

    `called`: the options that have another name than their fields. An option that the function annotates itself stays
    as it is.
    """

    def decorated(run: Callable[..., None]) -> Callable[..., None]:
        parameters = signature(run).parameters
        own = {name: each for name, each in parameters.items() if get_origin(each.annotation) is Annotated}
        options = {**own, **{field.name: _option_of(field, called) for field in fields_of(command)}, **own}

        @wraps(run)
        def with_fields(*, asker: Asker, **fields: Any) -> None:  # noqa: ANN401
            run(asker=asker, **{name: value for name, value in fields.items() if value is not None})

        with_fields.__signature__ = Signature([*options.values()])  # type: ignore[attr-defined]  # functions have it
        return asking(with_fields)

    return decorated


def subcommand(verb: Verb) -> Callable[..., None]:
    """The function that Typer registers: it reads the options from the signature and the help from the docstring."""

    def run(asker: Asker, *, deployment: str | None = None, every: bool = False, **fields: Any) -> None:  # noqa: ANN401
        if (deployment is None) is not every:
            raise UsageError(f"name one deployment, or say --all for {verb.of_all.which if verb.of_all else 'none'}")
        if deployment is not None:
            return carry_out(verb, asker, deployment=deployment, **fields)
        if fields.pop("wait", False):
            raise UsageError("--wait waits for one deployment: name it, or leave --wait out")
        own = {parameter.name: fields[parameter.name] for parameter in own_options}
        return _carry_out_for_all(verb, asker, own)

    own_options = [_option_of(field, verb.called) for field in fields_of(verb.command)]
    everyone = f"For {verb.of_all.which}." if verb.of_all else ""
    arguments = [option("deployment", _NameOrAll, None)] if verb.of_all else [option("deployment", DeploymentName)]
    options = [
        *arguments,
        *([option("every", Annotated[bool, typer.Option("--all", help=everyone)], default=False)] if everyone else []),
        *own_options,
        *([option("yes", Yes, default=False)] if verb.question else []),
        *([option("wait", Wait, default=False), option("timeout", Timeout, WAIT_SECONDS)] if verb.goal else []),
    ]
    run.__doc__ = verb.command.__doc__
    run.__signature__ = Signature(options)  # type: ignore[attr-defined]  # functions have it, mypy does not know
    return asking(run)


def _carry_out_for_all(verb: Verb, asker: Asker, fields: Result) -> None:
    """Send a command for each of the deployments; a refused one holds up no other. Returns the exit code."""
    assert verb.of_all is not None  # noqa: S101  (narrows the type: without it there is no --all)
    with Reader() as reader:
        names = _targets(reader, verb.of_all)
    results: list[Result] = []
    for name in names:
        mine = replace(asker, request_id=f"{asker.request_id}/{name}")
        try:
            result = mine.send(verb.command, deployment=name, **{**fields, **verb.of_all.payload})
        except UnreachableError:
            raise
        except RollwayError as refusal:
            results.append({"deployment": name, "error": refusal.as_json()})
            if not asker.as_json:
                tell(refusal, as_json=False)
        else:
            results.append(result)
            if not asker.as_json:
                mine.say(outcome(verb, result), result)
    if asker.as_json:
        print_json(results)
    elif not names:
        asker.say(f"There is none: --all means {verb.of_all.which}", {})
    if any("error" in each for each in results):
        raise typer.Exit(1)


def _targets(reader: Reader, of_all: OfAll) -> Sequence[str]:
    return [view.name for view in existing_deployments(reader) if of_all.is_meant(view)]
