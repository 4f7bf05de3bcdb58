"""A group whose commands are imported when they are asked for: `rollway --help` imports none, `rollway status` one."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from cli.listed import COMMANDS
from cli.listed.listed import Listed
from cli.terminal.exits import WAITING, WRITING, ExitCode, exits

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter
    from typer._click.shell_completion import CompletionItem


class LoadedWhenAsked(TyperGroup):
    """The commands of the table, and those that were given to Typer."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 -- Typer's own
        super().__init__(**settings)
        self.commands = cast("MutableMapping[str, Command]", _Commands(self.commands))

    def list_commands(self, ctx: "Context") -> list[str]:  # noqa: ARG002 -- Typer's own
        """The names, in the order of the table."""
        return list(self.commands)

    def format_commands(self, ctx: "Context", formatter: "HelpFormatter") -> None:  # noqa: ARG002 -- Typer's own
        """The list, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, f"{listed.line}.") for name, listed in COMMANDS.items()])

    def shell_complete(self, ctx: "Context", incomplete: str) -> "list[CompletionItem]":
        """Names that begin so, with their lines of the table; and options."""
        from typer._click.shell_completion import CompletionItem  # noqa: PLC0415 -- needed at a Tab only

        options = super(TyperGroup, self).shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=COMMANDS[name].line) for name in COMMANDS if name.startswith(incomplete)
        ] + options


class _Commands(Mapping[str, "Command"]):
    """Commands by name, each made when it is first read."""

    def __init__(self, made: Mapping[str, "Command"]) -> None:
        self._made = dict(made)

    def __getitem__(self, name: str) -> "Command":
        if name not in self._made:
            self._made[name] = _load(name, COMMANDS[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**COMMANDS, **self._made})

    def __len__(self) -> int:
        return len({**COMMANDS, **self._made})


def _load(name: str, listed: Listed) -> "Command":
    group = getattr(import_module(listed.module), "GROUPS", {}).get(name)
    if group is not None:
        return typer.main.get_command(group)
    run, codes, example = _described(name, listed)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    kind = getattr(run, "command_class", TyperCommand)
    alone.command(name, cls=kind, epilog=exits(*codes, example=example))(run)
    return typer.main.get_command(alone)


def _described(name: str, listed: Listed) -> tuple[Callable[..., object], Sequence[ExitCode], str]:
    """What the command runs, its exit codes besides 0, and examples."""
    module = import_module(listed.module)
    verb = getattr(module, "VERBS", {}).get(name)
    run = getattr(module, name.replace("-", "_"), None)
    if verb is None and run is not None:
        return run, listed.codes, listed.example
    from cli import subcommands  # noqa: PLC0415 -- imports what a command that changes something needs

    verb = verb or subcommands.verb_of(name)
    return subcommands.subcommand(verb), WAITING if verb.goal else WRITING, subcommands.example_of(verb)
