"""One supervised process: started, checked for its end and for being ready, started again after a crash."""

import errno
import logging
import os
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO
from urllib.parse import SplitResult, unquote, urlsplit

from domain.installation.settings import LogLimits
from runtime.machine.free_ports import Address, joined
from runtime.machine.identity import Identity
from runtime.machine.log_files import rotate
from stack.home.folder import connected, open_log
from stack.home.server_settings import HOST
from stack.home.stack_state import PartCondition, PartState
from stack.part_specs import Ready, StackPart
from stack.parts.postgres import remove_stale_pid_file
from stack.supervisor.child.child_process import AdoptedProcess, Process, open_gate, spawn
from stack.supervisor.child.watch import STUCK, Watch

_LOG = logging.getLogger("stack.supervisor")
# Seconds before the next start, by the number of crashes in a row.
DELAYS = (0.0, 0.5, 2.0, 5.0, 10.0, 30.0)
CRASHING_FROM = 4
_LONG_ENOUGH = 30.0
_MOST_PATIENCE = 8


class Child:
    """A part and its process of the moment. `since` is in Unix seconds, all other times are of the monotonic clock."""

    def __init__(self, part: StackPart, log: Path) -> None:
        self.part = part
        self.log = log
        self.restarts = 0
        self.crashes = 0
        self.error = ""
        self.finished = False
        self.ready = False
        self.since = time.time()
        self.start_at = time.monotonic()
        self._digest, self._hot_restart = part.digest, part.hot_restart
        self._watch = Watch(part.watched_port)
        self._epoch = 0
        self.ports = KeptPorts(part)
        self._process: Process | None = None
        self._identity: Identity | None = None
        self._started = 0.0
        self._log_start = 0
        self.timed_out = False
        self._patience = part.start_timeout

    @property
    def settled(self) -> bool:
        """Whether the parts that come after it may start."""
        return self.ready or self.finished

    @property
    def waiting_until(self) -> float | None:
        """The time when it will be started; None while it runs, and when its work is done."""
        return None if self._process is not None or self.finished else self.start_at

    @property
    def is_first(self) -> bool:
        """Whether what is started next takes nothing over from a process that runs."""
        return self._epoch == 0

    @property
    def hands_over(self) -> bool:
        """Whether what runs leaves its sockets to the process that is started next: they must share a name."""
        return bool(self.part.hot_restart) and self._hot_restart == self.part.hot_restart

    @property
    def is_watched(self) -> bool:
        """Whether it must be checked often that it still answers."""
        return self.ready and self.part.watched_port > 0

    def adopt(self, state: PartState) -> None:
        """Take over the process of an earlier supervisor, which was up when last seen."""
        if state.process is None:
            return
        self._process, self._identity = AdoptedProcess(state.process), state.process
        self._digest, self._hot_restart = state.digest, state.hot_restart
        self._started = time.monotonic()
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        self.since, self.restarts, self._epoch, self.ready = state.since, state.restarts, state.epoch, True
        with suppress(OSError):  # what an older release runs shares its port with nobody
            self.ports.keep()

    @property
    def is_adopted(self) -> bool:
        """Whether what runs now is not our child: its end has to be looked for."""
        return isinstance(self._process, AdoptedProcess)

    @property
    def end(self) -> int | None:
        """A descriptor that becomes readable when an adopted process ends, where there is one."""
        return self._process.end if isinstance(self._process, AdoptedProcess) else None

    def renew(self) -> None:
        """Reset as if it had never run; somebody has stopped it."""
        self.reap()
        self._epoch = 0
        self.crashes, self.error, self.finished = 0, "", False
        self.start_at = time.monotonic()

    def succeed(self) -> Process | None:
        """The running process, which hands its sockets over to the next one."""
        process, self._process = self._process, None
        epoch = self._epoch + 1
        self.renew()
        self._epoch = epoch
        return process

    def start(self, written_down: Callable[[], None]) -> None:
        """Start the process and call `written_down` before it does anything."""
        self.ready, self.timed_out = False, False
        self._watch.forget()
        self._started = time.monotonic()
        try:
            for file in self.part.pid_files:
                remove_stale_pid_file(Path(file))
            self.ports.keep()
            self._process, self._identity, gate = self._spawn()
        except (OSError, subprocess.SubprocessError) as error:
            self._crashed(str(error))
            return
        self._digest, self._hot_restart = self.part.digest, self.part.hot_restart
        self.since = time.time()
        written_down()
        open_gate(gate)

    def check(self) -> None:
        """Check whether it ended or became ready; plan the next start after a crash."""
        if self._process is None:
            return
        code = self._process.poll()
        if code == 0 and self.part.ready.kind == "exit":
            self._process, self.finished = None, True
        elif code is not None:
            self._crashed(self._why(code))
        elif not self.ready and is_ready(self.part.ready, self.log, self._log_start):
            self.ready, self.error = True, ""
        elif not self.ready and time.monotonic() - self._started > self._patience:
            self.timed_out = True
            self._process.kill()
        elif self.is_watched and self._watch.look():
            _LOG.warning("%s: %s; it is replaced", self.part.name, STUCK)
            self._process.kill()

    def reap(self) -> None:
        """Note that somebody stopped it."""
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):  # it is dying, but the kernel may take a moment to say so
                self._process.wait(timeout=5)
        self._process, self._identity, self.ready = None, None, False

    def keep_log_small(self, limits: LogLimits) -> None:
        """Truncate its log when it is too big; while it starts, its log is read from where this start began."""
        if self.settled and rotate(self.log, limits):
            self._log_start = 0

    def state(self) -> PartState:
        return PartState(
            name=self.part.name,
            condition=self._condition(),
            server=self.part.server,
            process=self._identity if self._process is not None else None,
            address=self.part.address,
            restarts=self.restarts,
            since=self.since,
            stop_signal=self.part.stop_signal,
            grace=self.part.grace,
            error=self.error,
            digest=self._digest,
            epoch=self._epoch,
            hot_restart=self._hot_restart,
        )

    def _condition(self) -> PartCondition:
        if self.finished:
            return "done"
        if self.ready:
            return "running"
        if self.crashes >= CRASHING_FROM:
            return "crashing"
        return "restarting" if self.restarts else "starting"

    def _why(self, code: int) -> str:
        if self.timed_out:
            return f"it was not ready after {self._patience:.0f} s"
        if self._watch.is_stuck:
            return STUCK
        if code < 0:
            return f"it was ended by signal {-code}"
        return last_words(self.log, self._log_start) or f"it ended with code {code}"

    def _crashed(self, reason: str) -> None:
        if self.timed_out:  # on a machine that has too much to do it would never be up
            self._patience = min(2 * self._patience, _MOST_PATIENCE * self.part.start_timeout)
        elif self.ready:
            self._patience = self.part.start_timeout
        if self.ready:
            self._epoch = 0
        lived = time.monotonic() - self._started
        self.crashes = 1 if self.ready and lived > _LONG_ENOUGH else self.crashes + 1
        self.restarts += 1
        self.start_at = time.monotonic() + DELAYS[min(self.crashes, len(DELAYS)) - 1]
        self.error = reason
        self.since = time.time()
        self._process, self.ready = None, False
        self.ports.let_wait()  # an adopted process had a socket of its own, which is gone with it

    def _spawn(self) -> tuple[Process, Identity | None, IO[bytes] | None]:
        output = open_log(self.log)
        try:
            self._log_start = os.fstat(output).st_size
            return spawn(self.part, self._epoch, output, self.ports.descriptor)
        finally:
            os.close(output)


Connect = Callable[[], socket.socket]


def is_ready(ready: Ready, log: Path, log_start: int) -> bool:
    """Whether the condition holds now; `log_start` is where in the log this run of the part began."""
    match ready.kind:
        case "redis":
            return _redis(ready.target)
        case "port":
            return _port(int(ready.target))
        case "http":
            return _http(ready.target)
        case "unix":
            path, _, page = ready.target.rpartition(":")
            return _http(f"http://{HOST}{page}", lambda: connected(Path(path), timeout=1))
        case "log":
            return _log_contains(log, log_start, ready.target.encode())
        case "exit":
            return False


def _redis(url: str) -> bool:
    server = urlsplit(url)
    connect = _to(server) if server.hostname else partial(connected, Path(unquote(server.path)), timeout=1)
    return b"PONG" in _answer(connect, f"AUTH {server.password}\r\nPING\r\n", until=b"PONG")


def _http(url: str, connect: Connect | None = None) -> bool:
    server = urlsplit(url)
    request = f"GET {server.path} HTTP/1.1\r\nHost: {server.netloc}\r\nConnection: close\r\n\r\n"
    return _answer(connect or _to(server), request, until=b"\r\n").split(b" ")[1:2] == [b"200"]


def _to(server: SplitResult) -> Connect:
    return partial(socket.create_connection, (server.hostname, server.port), timeout=1)


def _answer(connect: Connect, request: str, until: bytes) -> bytes:
    """The server's answer, read up to these bytes; empty when it does not answer.

    A client library would cost the supervisor, which every start waits for, half a second.
    """
    answer = b""
    try:
        with connect() as connection:
            connection.sendall(request.encode())
            while until not in answer and (more := connection.recv(512)):
                answer += more
    except OSError:
        return b""
    return answer


def _port(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def _log_contains(log: Path, start: int, text: bytes) -> bool:
    try:
        with log.open("rb") as file:
            file.seek(start)
            return text in file.read()
    except OSError:
        return False


_MOST_BYTES = 65_536
_LONGEST = 300


def last_words(log: Path, start: int) -> str:
    """The last line from `start` on that names an error, else the last line; empty when there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(start, log.stat().st_size - _MOST_BYTES))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    except OSError:
        return ""
    full = [line for line in lines if "No space left" in line]
    telling = [line for line in lines if "FATAL" in line or "Error" in line]
    return (full or telling or lines or [""])[-1][:_LONGEST]


_WAITING = 256
"""Connections that wait while nobody serves them."""


class KeptPorts:
    """Sockets that share the addresses of a part. Each is bound once, and closed when the whole stack stops."""

    def __init__(self, part: StackPart) -> None:
        self._handed = part.listens
        self._addresses = (*([part.listens] if part.listens else []), *part.shares)
        self._sockets: dict[Address, socket.socket] = {}

    def keep(self) -> None:
        """Keep the addresses that are not kept yet. Raises OSError with a sentence where another user has one."""
        for host, port in (address for address in self._addresses if address not in self._sockets):
            try:
                self._sockets[host, port] = joined((host, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                raise OSError(f"port {port} on {host} is in use by another program") from error

    @property
    def descriptor(self) -> int | None:
        """The descriptor that is handed to the process; None where it listens by itself."""
        return self._sockets[self._handed].fileno() if self._handed else None

    def let_wait(self) -> None:
        """Let callers wait for the next process instead of being refused."""
        if self._handed in self._sockets:
            self._sockets[self._handed].listen(_WAITING)

    def close(self) -> None:
        """Refuse callers: the part will not come back."""
        for listener in self._sockets.values():
            listener.close()
        self._sockets.clear()
