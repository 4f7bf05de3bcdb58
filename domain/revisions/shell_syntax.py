"""Shell syntax in a command or a variable, which run without a shell; and its replacement."""

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator, Field

_SHELLS = frozenset(("sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "busybox"))
_CODE_FOLLOWS = ("-c", "-e", "-S", "--eval", "--command")
_LISTENS = re.compile(r"\$(PORT|HOST|\{(PORT|HOST)\})(?![A-Za-z0-9_])")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)[^}]*\}|([A-Za-z_][A-Za-z0-9_]*))")
_WHOLE_VARIABLE = re.compile(r"\$\{?[A-Z_][A-Z0-9_]*\}?(/\S*)?")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_HOME = re.compile(r"~[a-z_][a-z0-9_-]*(/.*)?|~(/.*)?", re.DOTALL)
_OPERATOR = re.compile(r"&&|\|\|?|;|&|[0-9]?(?:>>?|<<?)\S*|&>\S*|\S*[^\\\s];")
_BETWEEN = ("&&", "||", "|")
_QUOTED = re.compile(r'\\.|\'[^\']*\'|"(?:\\.|[^"\\])*"', re.DOTALL)
_SUBSTITUTION = re.compile(r"\$\([^()]*\)|`[^`]*`")

_OF_SHELLS_ALONE: Mapping[str, str] = {
    "cd": "set working_directory",
    "exec": "leave 'exec' out: no shell runs before the program",
    "export": "put the variable into env",
    "set": "leave it out",
    "source": "put the variables into env, or name the program by its path, as in venv/bin/python",
    ".": "put the variables into env, or name the program by its path, as in venv/bin/python",
    "ulimit": "a host's ROLLWAY_REPLICA_FILES and ROLLWAY_REPLICA_PROCESSES say the limits",
    "umask": "leave it out",
    "unset": "leave the variable out of env",
    "eval": "write the command itself",
    "alias": "write the command itself",
    "if": "",
    "for": "",
    "while": "",
    "trap": "",
    "wait": "",
}
_A_SHELL = "let a shell run it: sh -c 'exec ...'"
_ALSO_READ = frozenset(("PATH", "HOME", "PWD", "USER", "HOSTNAME"))
"""Variables that people refer to, besides those of `env` itself: any other text with a $ may be a password."""
_BOUNDARIES = ":/@=,; "
_PATHS = "PATH"


def fault_of_text(command: str) -> str:
    """The fault of a command, as it was written, that needs a shell; empty for none. Quoted text is literal."""
    bare = _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), command)
    if _has_shell(command.split()):
        return ""
    for word in bare.split():
        if _OPERATOR.fullmatch(word):
            return _of_operator(word)
    if substitution := _SUBSTITUTION.search(bare):
        return f"no shell reads {substitution[0]!r}: write what it comes to, or {_A_SHELL}"
    if (variable := _VARIABLE.search(bare)) and not _LISTENS.match(variable[0]):
        return f"no shell reads {variable[0]!r}: write its value, or {_A_SHELL}"
    return ""


def fault_of_command(command: Sequence[str]) -> str:
    """The fault of a command's words that need a shell; empty for none."""
    first = command[0]
    if first in _OF_SHELLS_ALONE:
        instead = _OF_SHELLS_ALONE[first]
        return f"{first!r} is a word of shells, and no program: {instead + ', or ' if instead else ''}{_A_SHELL}"
    if (assignment := _ASSIGNMENT.fullmatch(first)) and len(command) > 1:
        name, value = assignment.groups()
        return f"no shell reads {first!r}: put it into env, as in env: {{{name}: {value!r}}}, or {_A_SHELL}"
    if _has_shell(command):
        return ""
    for word in _data_of(command):
        if _HOME.fullmatch(word):
            return f"no shell reads {word!r}: write the whole path, as in '/home/ann/{word.partition('/')[2]}'"
        if word in _BETWEEN[:2]:
            return _of_operator(word)
        if _LISTENS.search(word):
            right = word.replace("{", "").replace("}", "").replace("$PORT", "{port}").replace("$HOST", "{host}")
            return f"no shell reads {word!r}: write {right!r}, or let a shell run it, sh -c '...'"
        if _WHOLE_VARIABLE.fullmatch(word):
            return f"no shell reads {word!r}: write its value, or {_A_SHELL}"
    return ""


def fault_of_variable(name: str, value: str, env: Mapping[str, object]) -> str:
    """The fault of a variable's value that needs a shell; empty for none. `env`: all variables, with this one.

    A text with a $ may be a password: it is meant as a reference where it names a variable that is there.
    """
    for match in _VARIABLE.finditer(value):
        variable = match[1] or match[2]
        if match.start() and value[match.start() - 1] not in _BOUNDARIES:
            continue
        if variable in {"PORT", "HOST"}:
            right = value.replace(match[0], f"{{{variable.lower()}}}")
            return f"no shell reads {match[0]!r}: write {right!r}"
        if variable in _ALSO_READ or variable in env:
            return f"no shell reads {match[0]!r}, so it is kept as it is: write the whole value{_path_for(name)}"
    if name.endswith(_PATHS) and any(map(_HOME.fullmatch, value.split(":"))):
        return f"no shell reads '~' in {value!r}: write the whole path"
    return ""


def _path_for(name: str) -> str:
    return ", such as '/opt/app/bin:/usr/local/bin:/usr/bin:/bin'" if name == _PATHS else ""


def _of_operator(word: str) -> str:
    if word == "&":
        return "no shell reads '&': leave it out, as a replica stays in the foreground"
    if word in _BETWEEN or word.endswith(";"):
        line = "... | ..." if word == "|" else f"... {word if word in _BETWEEN else ';'} exec ..."
        return f"no shell reads {word!r}: {_A_SHELL.replace('exec ...', line)}"
    return f"no shell reads {word!r}: leave it out, as 'rollway logs' has what it prints, or {_A_SHELL}"


def _has_shell(command: Sequence[str]) -> bool:
    return any(word.rpartition("/")[2] in _SHELLS for word in command)


def _data_of(command: Sequence[str]) -> list[str]:
    """The words without those that are code for an interpreter."""
    return [word for previous, word in pairwise(("", *command)) if previous not in _CODE_FOLLOWS]


def split_command(value: object) -> object:
    """The words of a command that is one text. Raises ValueError for a quote that is not closed."""
    try:
        return shlex.split(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("has a quote that is not closed; as a list no quotes are needed: [python, serve.py]") from None


def _with_a_program(command: tuple[str, ...]) -> tuple[str, ...]:
    if not command[0]:
        raise ValueError("must begin with the program to run, which '' is not")
    return command


ProgramWords = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_with_a_program)]
"""A program with its arguments."""
