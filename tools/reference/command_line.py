"""The page about the commands of `rollway`, and their exit codes."""

import re
from collections.abc import Iterator
from typing import Any

import typer

from cli.main import app
from cli.terminal.exits import MEANING
from tools.reference.markdown import page, prose, table


def command_line_page() -> str:
    """What docs/reference/command-line.md holds."""
    group: Any = typer.main.get_command(app)
    context = typer.Context(group)
    commands = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return page(
        "Commands",
        "## Exit codes\n\n" + table(("code", "meaning"), ([f"`{code.value}`", said] for code, said in MEANING.items())),
        *(
            _command(*shown)
            for name, command in commands.items()
            if not command.hidden
            for shown in _each(name, command)
        ),
    )


def _each(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """The command, or those of a group."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    for word, command_of_group in inner.items():
        yield f"{name} {word}", command_of_group


def _command(name: str, command: Any) -> str:
    said, _, rest = command.help.partition("\b\n")
    text = prose(said.replace("\f", "")).strip()
    shown = [f"```text\n{rest.strip()}\n```"] if rest.strip() else []
    options = table(("option", "default", "meaning"), [_parameter(parameter) for parameter in command.params])
    examples, _, exits = (command.epilog or "").replace("\b\n", "").partition("Exit codes:")
    lines = [f"    {line.strip()}" for line in examples.replace("Examples:", "").splitlines() if line.strip()]
    codes = ", ".join(f"`{code}`" for code in re.findall(r"^  (\d+) ", exits, re.MULTILINE))
    parts = [f"## `rollway {name}`", text, *shown, options.strip(), "\n".join(lines)]
    return "\n\n".join([*parts, f"Exit codes: {codes}." if codes else ""])


def _parameter(parameter: Any) -> list[str]:
    names = ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))
    if parameter.param_type_name == "argument":
        names = f"`{parameter.metavar or parameter.name.upper()}`"
    return [names, _default(parameter), parameter.help or ""]


def _default(parameter: Any) -> str:
    value = parameter.default
    if parameter.required:
        return "required"
    return "" if value in (None, "", False) or callable(value) else f"`{value}`"
