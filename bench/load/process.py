"""The generator from the outside: started, told of phases, stopped and asked for its report."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pydantic import TypeAdapter

from bench.load.generator import LoadSettings
from bench.load.report import REPORT, LoadReport
from stack.home.folder import project_root

_SETTINGS = TypeAdapter(LoadSettings)


class LoadError(Exception):
    """The generator did not do what it was told; the message is one sentence."""


class Load:
    """A generator that runs in a process of its own."""

    def __init__(self, settings: LoadSettings) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.load"],
            cwd=project_root(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._settings = settings

    def begin(self) -> None:
        """Send the first requests. Raises LoadError."""
        self._tell(_SETTINGS.dump_python(self._settings, mode="json"))
        self._hear("ready")

    def phase(self, name: str) -> float:
        """Requests due from now on belong to this phase; when that is, in Unix seconds. Raises LoadError."""
        self._tell({"do": "phase", "name": name})
        return float(self._hear("phase")["at"])

    def finish(self) -> LoadReport:
        """Send no more, wait for what is open, and tell. Raises LoadError."""
        self._tell({"do": "stop"})
        return self.wait()

    def wait(self) -> LoadReport:
        """Wait until its time is over and everything is answered or too late, and tell. Raises LoadError."""
        report = REPORT.validate_python(self._hear("report")["report"])
        self._process.wait()
        return report

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                pipe.close() if pipe else None

    def _tell(self, words: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(words) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return  # its time was over; what it had to say can still be heard

    def _hear(self, what: str) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            words: dict[str, Any] = json.loads(line)
            if what in words:
                return words
        raise LoadError(f"the load generator ended with exit code {self._process.wait()} before it said {what!r}")


@contextmanager
def running_load(settings: LoadSettings) -> Iterator[Load]:
    """A load that has begun; its process is gone at the end."""
    load = Load(settings)
    try:
        load.begin()
        yield load
    finally:
        load.end()
