"""The entry point of `rollway`: commands are imported on demand; exit codes and refusals of a command line."""

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from cli.catalog import COMMANDS, GROUPS, Listed
from cli.command_hints import hint_for_missing, hint_for_option, hint_for_value, hint_for_words
from cli.terminal.exits import (
    WAITING,
    WRITING,
    ExitCode,
    FaultError,
    UsageError,
    exit_code,
    exits,
    tell,
    write_ascii_where_needed,
)
from domain.text.errors import InvalidInputError, RollwayError

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter
    from typer._click.shell_completion import CompletionItem


class LoadedWhenAsked(TyperGroup):
    """The commands of the table, and those of Typer's own."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 -- Typer's own
        super().__init__(**settings)
        self.commands = cast("MutableMapping[str, Command]", _Commands(self.commands))

    def list_commands(self, ctx: "Context") -> list[str]:  # noqa: ARG002 -- Typer's own
        return list(self.commands)

    def format_commands(self, ctx: "Context", formatter: "HelpFormatter") -> None:  # noqa: ARG002 -- Typer's own
        """The list, from the table alone."""
        width = max(map(len, COMMANDS))
        for heading, group in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), f"{entry.line}.") for name, entry in group.items()])

    def shell_complete(self, ctx: "Context", incomplete: str) -> "list[CompletionItem]":
        """Names that begin with this, with their lines of the table; and options."""
        from typer._click.shell_completion import CompletionItem  # noqa: PLC0415 -- needed at a Tab only

        options = super(TyperGroup, self).shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=COMMANDS[name].line) for name in COMMANDS if name.startswith(incomplete)
        ] + options


class _Commands(Mapping[str, "Command"]):
    """Commands by name, each made when it is first read."""

    def __init__(self, commands: Mapping[str, "Command"]) -> None:
        self._made = dict(commands)

    def __getitem__(self, name: str) -> "Command":
        if name not in self._made:
            self._made[name] = _load(name, COMMANDS[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**COMMANDS, **self._made})

    def __len__(self) -> int:
        return len({**COMMANDS, **self._made})


def _load(name: str, entry: Listed) -> "Command":
    group = getattr(import_module(entry.module), "GROUPS", {}).get(name)
    if group is not None:
        return typer.main.get_command(group)
    run, codes, example = _described(name, entry)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    kind = getattr(run, "command_class", TyperCommand)
    alone.command(name, cls=kind, epilog=exits(*codes, example=example))(run)
    return typer.main.get_command(alone)


def _described(name: str, entry: Listed) -> tuple[Callable[..., object], Sequence[ExitCode], str]:
    """The function of the command, its exit codes besides 0, and examples."""
    module = import_module(entry.module)
    verb = getattr(module, "VERBS", {}).get(name)
    run = getattr(module, name.replace("-", "_"), None)
    if verb is None and run is not None:
        return run, entry.codes, entry.example
    from cli import subcommands  # noqa: PLC0415 -- imports what a command that changes something needs

    verb = verb or subcommands.verb_of(name)
    return subcommands.subcommand(verb), WAITING if verb.goal else WRITING, subcommands.example_of(verb)


app = typer.Typer(
    name="rollway",
    cls=LoadedWhenAsked,
    help="Rolling updates for services. Start with 'rollway demo', or 'up' and 'init'.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_SHOW_TRACEBACKS = "ROLLWAY_TRACEBACKS"


def _show_version(*, is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version  # noqa: PLC0415 -- no other command needs it

        typer.echo(f"rollway {version('rollway')}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of `rollway` itself."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; a refusal is one sentence, never a traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    as_json = "--json" in words[: words.index("--") if "--" in words else None]
    write_ascii_where_needed()
    try:
        _refuse_what_is_no_text(words)
        returned = app(words, prog_name="rollway", standalone_mode=False)
    except TyperException as error:
        usage = UsageError(f"{_sentence_of(error, words)}; {_help_of(words)}")
        tell(usage, as_json=as_json)
        return exit_code(usage)
    except RollwayError as error:
        from cli.completion import with_name_meant  # noqa: PLC0415 -- needed for a refusal only

        tell(with_name_meant(_as_typed(error, words)), as_json=as_json)
        return exit_code(error)
    except Exception as error:
        if os.environ.get(_SHOW_TRACEBACKS):
            raise
        fault = FaultError.of(error, _SHOW_TRACEBACKS)
        tell(fault, as_json=as_json)
        return exit_code(fault)
    return returned if isinstance(returned, int) else 0


def _sentence_of(error: TyperException, words: Sequence[str]) -> str:
    """Typer's message, or a hint for a word of another tool."""
    from typer._click.exceptions import MissingParameter  # noqa: PLC0415 -- needed for a refusal only

    hint = None
    if words[0] not in COMMANDS:
        hint = hint_for_words(words)
    elif option := getattr(error, "option_name", None):
        hint = hint_for_option(words, option)
    elif isinstance(error, MissingParameter):
        hint = hint_for_missing(words)
    elif isinstance(error.__cause__, ValueError):  # as Pydantic's is
        hint = hint_for_value(words)
    return hint or _in_our_words(error).rstrip(".")


def _in_our_words(error: TyperException) -> str:
    """A wrong value in the words for a wrong field."""
    from pydantic import ValidationError  # noqa: PLC0415 -- needed for a refusal only

    from domain.text.validation_errors import fault_of  # noqa: PLC0415 -- as above

    message = error.format_message()
    if not isinstance(error.__cause__, ValidationError):
        return message
    fault = {**error.__cause__.errors()[0], "loc": ()}
    return f"{message.partition(': ')[0]}: {fault_of(fault).sentence()}"


def _as_typed(error: RollwayError, words: Sequence[str]) -> RollwayError:
    """The refusal with the fields as they are typed: --for, and not duration_seconds."""
    field = error.detail.get("field")
    if not isinstance(error, InvalidInputError) or field is None or words[0] not in COMMANDS:
        return error
    typed = {option.name: option.opts[0] for option in _load(words[0], COMMANDS[words[0]]).params}
    options = {name: option for name, option in typed.items() if option.startswith("--")}
    pattern = f"^{field}(?=:)" if field else r"\w+"
    return type(error)(re.sub(pattern, lambda word: options.get(word[0], word[0]), error.message), **error.detail)


def _refuse_what_is_no_text(words: Sequence[str]) -> None:
    """Raises UsageError. The shell hands on any bytes; those that are no UTF-8 could be neither stored nor shown."""
    for number, argument in enumerate(words, 1):
        if "\0" in argument:
            raise UsageError(f"argument {number}, {argument!r}, has the character NUL; {_help_of(words)}")
        if argument.encode(errors="ignore").decode() != argument:
            raise UsageError(f"argument {number}, {argument!r}, is no UTF-8 text; {_help_of(words)}")


def _help_of(words: Sequence[str]) -> str:
    command = next((f" {word}" for word in words if word in COMMANDS), "")
    return f"see 'rollway{command} --help'"


if __name__ == "__main__":
    sys.exit(main())
