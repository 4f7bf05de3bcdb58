"""A question of the doctor's, and what was found."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine

from cli.terminal.exits import ExitCode


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings, a sentence each: none where all is well. `counts`: of what was looked at; `document`: for --json.

    Lists that several questions have under the same name are one in the document.
    """

    sentences: Sequence[str] = ()
    counts: str = ""
    document: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DoctorQuestion:
    """What is asked, who looks, and what a person does about what is found.

    `mends`: the command that mends it, or says more. `exit`: how doctor ends when something is found; `DONE` is for
    what is no fault here. `metric`: where Prometheus has the same; empty: nowhere.
    """

    asks: str
    look: Callable[[Engine], Findings]
    mends: str
    exit: ExitCode = ExitCode.DONE
    metric: str = ""
