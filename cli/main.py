"""The entry point of `rollway`: a command line, and how it ends."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.exceptions import TyperException

from cli.habits import hint_for_option, hint_for_words
from cli.listed import COMMANDS
from cli.loaded import LoadedWhenAsked
from cli.terminal.exits import FaultError, UsageError, exit_code, tell
from cli.terminal.streams import write_ascii_where_needed
from domain.words.errors import RollwayError

app = typer.Typer(
    name="rollway",
    cls=LoadedWhenAsked,
    help="Rolling updates for services outside Kubernetes.",
    epilog="Start with 'rollway demo', or with 'rollway up' and 'rollway apply -f examples/web.yaml --wait'.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_SHOW_TRACEBACKS = "ROLLWAY_TRACEBACKS"


def _show_version(*, asked: bool) -> None:
    if asked:
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
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    as_json = "--json" in given[: given.index("--") if "--" in given else None]
    write_ascii_where_needed()
    try:
        _refuse_what_is_no_text(given)
        returned = app(given, prog_name="rollway", standalone_mode=False)
    except TyperException as error:
        usage = UsageError(f"{_sentence_of(error, given)}; {_help_of(given)}")
        tell(usage, as_json=as_json)
        return exit_code(usage)
    except RollwayError as error:
        tell(error, as_json=as_json)
        return exit_code(error)
    except Exception as error:
        if os.environ.get(_SHOW_TRACEBACKS):
            raise
        fault = FaultError.of(error, _SHOW_TRACEBACKS)
        tell(fault, as_json=as_json)
        return exit_code(fault)
    return returned if isinstance(returned, int) else 0


def _sentence_of(error: TyperException, given: Sequence[str]) -> str:
    """What Typer says, or the word that somebody brought along in the words of this house."""
    hint = None
    if given[0] not in COMMANDS:
        hint = hint_for_words(given)
    elif option := getattr(error, "option_name", None):
        hint = hint_for_option(given, option)
    return hint or error.format_message().rstrip(".")


def _refuse_what_is_no_text(given: Sequence[str]) -> None:
    """Raises UsageError. The shell hands on any bytes; what is no UTF-8 could be neither stored nor shown."""
    for number, argument in enumerate(given, 1):
        if "\0" in argument:
            raise UsageError(f"argument {number}, {argument!r}, has the character NUL; {_help_of(given)}")
        if argument.encode(errors="ignore").decode() != argument:
            raise UsageError(f"argument {number}, {argument!r}, is no UTF-8 text; {_help_of(given)}")


def _help_of(given: Sequence[str]) -> str:
    command = next((f" {word}" for word in given if word in COMMANDS), "")
    return f"see 'rollway{command} --help'"


if __name__ == "__main__":
    sys.exit(main())
