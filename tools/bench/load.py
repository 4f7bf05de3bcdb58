"""The load in a process of its own: started, told of phases, stopped and asked for its report, in JSON lines.

in   {"address": ..., "rate": ..., ...}     the first line: LoadSettings
out  {"ready": true}                        requests are being sent
in   {"do": "phase", "name": "..."}         requests due from now on belong to this phase
out  {"phase": "...", "at": Unix seconds}
in   {"do": "stop"}                         or the end of the input, or the end of its time
out  {"report": {...}}                      the last line: LoadReport
"""

import asyncio
import gc
import ipaddress
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pydantic import TypeAdapter

from cli.demo.load.generator import Generator, LoadSettings
from cli.demo.load.tally import LoadReport
from stack.home.folder import project_root

_SETTINGS = TypeAdapter(LoadSettings)
_REPORT = TypeAdapter(LoadReport)
_LINE_LIMIT = 2**20


class LoadError(Exception):
    """The generator did not do what it was told; the message is one sentence."""


class LoadProcess:
    """A generator that runs in a process of its own."""

    def __init__(self, settings: LoadSettings) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tools.bench.load"],
            cwd=project_root(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._settings = settings

    def begin(self) -> None:
        """Send the first requests. Raises LoadError."""
        self._write(_SETTINGS.dump_python(self._settings, mode="json"))
        self._read("ready")

    def phase(self, name: str) -> float:
        """Requests due from now on belong to this phase; when that is, in Unix seconds. Raises LoadError."""
        self._write({"do": "phase", "name": name})
        return float(self._read("phase")["at"])

    def finish(self) -> LoadReport:
        """Send no more, wait for what is open, and tell. Raises LoadError."""
        self._write({"do": "stop"})
        return self.wait()

    def wait(self) -> LoadReport:
        """Wait until its time is over and everything is answered or too late, and tell. Raises LoadError."""
        report = _REPORT.validate_python(self._read("report")["report"])
        self._process.wait()
        return report

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                pipe.close() if pipe else None

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return  # its time was over; its last lines can still be read

    def _read(self, what: str) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message: dict[str, Any] = json.loads(line)
            if what in message:
                return message
        raise LoadError(f"the load generator ended with exit code {self._process.wait()} before it said {what!r}")


@contextmanager
def running_load(settings: LoadSettings) -> Iterator[LoadProcess]:
    """A load that has begun; its process is gone at the end."""
    load = LoadProcess(settings)
    try:
        load.begin()
        yield load
    finally:
        load.end()


async def main() -> None:
    """The process itself: one run."""
    commands = await _standard_input()
    settings = _SETTINGS.validate_json(await commands.readline())
    host = settings.address.rpartition(":")[0]
    if not ipaddress.ip_address(host).is_loopback:
        sys.exit(f"{host} is not a loopback address; load is sent nowhere else")
    generator = Generator(settings)
    following = asyncio.create_task(_follow(commands, generator))
    gc.freeze()
    _print({"ready": True})
    report = await generator.run()
    following.cancel()
    _print({"report": _REPORT.dump_python(report, mode="json")})


async def _follow(commands: asyncio.StreamReader, generator: Generator) -> None:
    while line := await commands.readline():
        match json.loads(line):
            case {"do": "phase", "name": str(name)}:
                _print({"phase": name, "at": generator.begin_phase(name).began_at})
            case {"do": "stop"}:
                break
    generator.stop()


async def _standard_input() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=_LINE_LIMIT)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def _print(message: dict[str, object]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
