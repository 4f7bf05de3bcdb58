"""The functions that Typer registers for verbs: with the wording of a table, or as the command's class says."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo

from cli.completing import deployments_offered
from cli.options import WAIT_SECONDS, DeploymentName, ThroughFreeze, Timeout, Wait, Yes
from cli.sending import Asker, OfAll, Result, Verb, asking, carry_out, option, said
from cli.servers import Reader
from cli.terminal.exits import UnreachableError, UsageError, tell
from cli.terminal.output import print_json
from db.views.deployments import existing_deployments
from domain.commands.base import Starting, StartingCommand
from domain.commands.registry import COMMANDS
from domain.words.errors import RollwayError

_NameOrAll = Annotated[
    str | None,
    typer.Argument(
        metavar="[DEPLOYMENT]",
        help="Name of the deployment.",
        show_default=False,
        autocompletion=deployments_offered,
    ),
]


def verb_of(name: str) -> Verb:
    """A command as its class alone says it: needed fields are arguments, others options, and it says what was asked."""
    command = next(command for command in COMMANDS.values() if command.door.verb == name)
    own = (field for field in command.model_fields.items() if field[0] not in StartingCommand.model_fields)
    through = [option("through_freeze", ThroughFreeze, default=False)] if issubclass(command, Starting) else []
    return Verb(
        command,
        str(command.__doc__),
        f"rollway {name} web",
        lambda result: f"{result['deployment']}: {name}{' already' if result['already'] else ''}",
        options=(*(_option_of(*field) for field in own), *through),
    )


def _option_of(name: str, field: FieldInfo) -> Parameter:
    if field.is_required():
        return option(name, Annotated[field.annotation, typer.Argument(metavar=name.upper(), show_default=False)])
    return option(name, Annotated[field.annotation, typer.Option(show_default=False)], field.default)


def subcommand(verb: Verb) -> Callable[..., None]:
    """The function that Typer registers: it reads the options from the signature and the help from the docstring."""

    def run(asker: Asker, *, deployment: str | None = None, every: bool = False, **given: Any) -> None:  # noqa: ANN401
        if (deployment is None) is not every:
            raise UsageError(f"name one deployment, or say --all for {verb.of_all.which if verb.of_all else 'none'}")
        if deployment is not None:
            return carry_out(verb, asker, deployment=deployment, **given)
        if given.pop("wait", False):
            raise UsageError("--wait waits for one deployment: name it, or leave --wait out")
        own = {parameter.name: given[parameter.name] for parameter in verb.options}
        return _carry_out_for_all(verb, asker, own)

    everyone = f"For {verb.of_all.which}." if verb.of_all else ""
    named = [option("deployment", _NameOrAll, None)] if verb.of_all else [option("deployment", DeploymentName)]
    options = [
        *named,
        *([option("every", Annotated[bool, typer.Option("--all", help=everyone)], default=False)] if everyone else []),
        *verb.options,
        *([option("yes", Yes, default=False)] if verb.question else []),
        *([option("wait", Wait, default=False), option("timeout", Timeout, WAIT_SECONDS)] if verb.goal else []),
    ]
    run.__doc__ = verb.help
    run.__signature__ = Signature(options)  # type: ignore[attr-defined]  # functions have it, mypy does not know
    return asking(run)


def _carry_out_for_all(verb: Verb, asker: Asker, given: Result) -> None:
    """One command for each deployment that is meant; one that is refused holds up no other. The exit code says so."""
    assert verb.of_all is not None  # noqa: S101  (narrows the type: without it there is no --all)
    with Reader() as reader:
        names = _meant(reader, verb.of_all)
    done: list[Result] = []
    for name in names:
        mine = replace(asker, request_id=f"{asker.request_id}/{name}")
        try:
            result = mine.send(verb.command, deployment=name, **{**given, **verb.of_all.payload})
        except UnreachableError:
            raise
        except RollwayError as refusal:
            done.append({"deployment": name, "error": refusal.as_json()})
            if not asker.as_json:
                tell(refusal, as_json=False)
        else:
            done.append(result)
            if not asker.as_json:
                mine.say(said(verb, result), result)
    if asker.as_json:
        print_json(done)
    elif not names:
        asker.say(f"There is none: --all means {verb.of_all.which}", {})
    if any("error" in each for each in done):
        raise typer.Exit(1)


def _meant(reader: Reader, of_all: OfAll) -> Sequence[str]:
    return [view.name for view in reader.read(existing_deployments) if of_all.is_meant(view)]
