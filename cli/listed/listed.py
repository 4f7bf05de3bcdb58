"""One command, as `rollway --help` lists it without importing it."""

from collections.abc import Sequence
from dataclasses import dataclass

from cli.terminal.exits import ExitCode


@dataclass(frozen=True, slots=True)
class Listed:
    """One command: its module, its line in the list, its exit codes besides 0, and examples, one a line.

    `module` has a function of the command's name, one in GROUPS, whose commands have codes and examples of their own,
    or perhaps an entry in VERBS: help, options and example are then what the class of the command says.
    """

    module: str
    line: str
    codes: Sequence[ExitCode] = ()
    example: str = ""
