"""What is fuzzed: a stack with a deployment in it, and what must be true of it after every input."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from sqlalchemy import Engine

from cli.main import main
from tests.support.proxies import plain_http
from tests.support.rows.deployments import read
from tests.support.rows.rows import tables
from tests.support.stack.server_process import Process

_OF_SERVERS = {"publishers", "intervals", "answers", "proxy_counters", "drain_looks", "requests", "request_sums"}
"""Tables that the server for proxies writes meanwhile: it may show itself only after the first input."""


@dataclass(frozen=True, slots=True)
class Said:
    """How a command line ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class World:
    """A stack with the deployment `web`: its database, a folder for files, the server for proxies, web's routes."""

    engine: Engine
    folder: Path
    api: Process
    routes: tuple[UUID, ...]

    def rows(self) -> list[dict[str, object]]:
        """The number of rows of each table, except those of servers; and the number of changes of deployments."""
        names = [name for name in tables(self.engine) if name not in _OF_SERVERS]
        counts = [f"SELECT '{name}' AS name, count(*) AS n FROM {name}" for name in names]
        changes = "SELECT 'changes' AS name, coalesce(sum(version), 0) AS n FROM deployments"
        return read(self.engine, " UNION ALL ".join([*counts, changes]))

    @contextmanager
    def unchanged_by_a_refusal(self) -> Iterator["Outcome"]:
        """Afterwards, if the outcome is a refusal, no table has another row, and no deployment another version."""
        before, outcome = self.rows(), Outcome()
        yield outcome
        written = [row for row in self.rows() if row not in before] if outcome.refused else []
        assert not written, f"refused, and yet written: {written}"

    def rollway(self, arguments: Sequence[str]) -> Said:
        """A command line in this process."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(arguments)
        return Said(code, out.getvalue(), err.getvalue())

    def is_well(self) -> None:
        """The server for proxies has lived through it all, complains of nothing, and answers at once."""
        assert self.api.process is not None
        assert self.api.process.poll() is None, "the server for proxies has died"
        said = plain_http.get(f"{self.api.url}/healthz", timeout=2).json()
        assert (said["status"], said["acknowledgements"]) == ("ok", "ok")
        assert "Traceback" not in self.api.log.read_text(errors="replace")


@dataclass(slots=True)
class Outcome:
    """Whether an input was refused, which is known when it has been answered."""

    refused: bool = False


def obeyed(said: str) -> set[str]:
    """The characters that a terminal does not show but obeys, line ends and tabs apart."""
    return {character for character in said if character < " " or "\x7f" <= character <= "\x9f"} - {"\n", "\t"}
