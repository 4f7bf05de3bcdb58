"""Starts one replica process: held at a gate until its record is written, then told what to become."""

import marshal
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from domain.revisions.revision import RevisionSpec, filled_in
from runtime.process.accounts import Account
from runtime.process.begin import become
from runtime.process.begin.limits import ProcessLimits
from runtime.process.program_access import ReplicaAccess
from runtime.protocol import ReplicaRequest, ReplicaStartError, RuntimeUnavailableError

BEGIN_SECONDS = 5.0
_MOST_BYTES = 64
_FOR_THE_LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Variables of the worker that replicas get, since an interpreter may not start without them."""


@dataclass(frozen=True, slots=True)
class Confines:
    """The circumstances of a process: its account, else this process's user; its limits; the closed home."""

    account: Account | None
    limits: ProcessLimits
    home: Path


@dataclass(frozen=True, slots=True)
class HeldProcess:
    """A process that has done nothing yet, and ends if its maker goes away."""

    request: ReplicaRequest
    env: Mapping[str, str]
    confines: Confines
    child: subprocess.Popen[bytes]
    _order: bytes = field(repr=False)

    def begin(self) -> None:
        """Let it become the replica. On failure nothing is left of it.

        Raises ReplicaStartError, and RuntimeUnavailableError where it does not say in time what became of it.
        """
        try:
            report = self._report()
        except TimeoutError:
            self._end()
            raise RuntimeUnavailableError(
                f"{_command_of(self.request)} has not started within {BEGIN_SECONDS:g} s on this host"
            ) from None
        why_not = report.lstrip(become.BEGUN)
        if report and not why_not:
            return
        self._end()
        if not report:
            raise RuntimeUnavailableError(
                f"the process that was to run {_command_of(self.request)} ended before it did"
            )
        raise ReplicaStartError(self._in_words(why_not))

    def drop(self) -> None:
        """End it."""
        for pipe in (self.child.stdin, self.child.stdout):
            if pipe:
                pipe.close()
        self._end()

    def _report(self) -> bytes:
        """Hand it the order, and read its output to the end. Raises TimeoutError."""
        gate, answer = self.child.stdin, self.child.stdout
        if gate is None or answer is None:
            raise TypeError("a child that was given pipes has them")
        order, report, deadline = memoryview(self._order), b"", time.monotonic() + BEGIN_SECONDS
        with gate, answer, selectors.DefaultSelector() as selector:
            os.set_blocking(gate.fileno(), False)
            selector.register(gate, selectors.EVENT_WRITE)
            selector.register(answer, selectors.EVENT_READ)
            while len(report) < _MOST_BYTES:
                ready = {key.fileobj for key, _ in selector.select(max(0.0, deadline - time.monotonic()))}
                if not ready:
                    raise TimeoutError
                if gate in ready:
                    order = order[_write(gate.fileno(), order) :]
                    if not order:
                        selector.unregister(gate)
                        gate.close()
                if answer in ready:
                    piece = os.read(answer.fileno(), _MOST_BYTES - len(report))
                    if not piece:
                        break
                    report += piece
        return report

    def _end(self) -> None:
        with suppress(OSError):
            os.killpg(self.child.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self.child.wait(timeout=BEGIN_SECONDS)

    def _in_words(self, why_not: bytes) -> str:
        command, spec = _command_of(self.request), self.request.spec
        account = self.confines.account
        who = f" for the user {account.variables['USER']!r}, as whom it runs" if account else ""
        match why_not:
            case become.NO_FOLDER:
                folder = f"the working directory {spec.working_directory!r} of revision {self.request.revision!r}"
                return (
                    f"{folder} is not a folder on this host{who}; working_directory in its file names another"
                    f"{self._closed_on_the_way(folder_alone=True)}"
                )
            case become.NO_COMMAND:
                return f"{command} was not found on this host{who}{_where(spec)}{self._closed_on_the_way()}"
            case become.CLOSED:
                barrier = self._closed_on_the_way()
                return f"{command} {'cannot be run' if barrier else 'is not an executable file'}{who}{barrier}"
            case become.NO_PROGRAM:
                return f"{command} is no program of this system"
        return f"{command} {_trouble(why_not)}"

    def _closed_on_the_way(self, *, folder_alone: bool = False) -> str:
        """What keeps another user out: its command may lead where its path does not say."""
        access = access_of(self.request, self.env, self.confines.account)
        barrier = access.barrier(self.confines.home, folder_alone=folder_alone)
        return f"; the user {access.user!r} {barrier}" if barrier else ""


def access_of(request: ReplicaRequest, env: Mapping[str, str], account: Account | None) -> ReplicaAccess:
    """What it begins with, under this account or as the user of this process."""
    uid = account.uid if account else os.geteuid()
    folder = Path(request.spec.working_directory or Path.cwd())
    program, *words = filled_in(request.spec.command or ("",), env)
    return ReplicaAccess(
        user=account.variables["USER"] if account else env.get("USER", str(uid)),
        uid=uid,
        gids=(account.gid, *account.groups) if account else (os.getegid(), *os.getgroups()),
        folder=str(folder),
        path=env.get("PATH", os.defpath),
        program=program,
        scripts=tuple(word for word in words if _is_file(folder / word)),
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long a word, or one that is no path
        return False


def hold(request: ReplicaRequest, env: Mapping[str, str], output: int, confines: Confines) -> HeldProcess:
    """A process in its own session, its output to that descriptor, that waits to become the replica.

    Raises ReplicaStartError.
    """
    if request.spec.command is None:
        raise ReplicaStartError(f"revision {request.revision!r} has no command to run as a process")
    try:
        order = _order_for(request, env, confines)
        child = subprocess.Popen(  # noqa: S603  # running the user's command is the purpose
            (sys.executable, "-I", "-S", _program()),
            env={name: os.environ[name] for name in _FOR_THE_LOADER if name in os.environ},
            cwd="/" if request.spec.working_directory else None,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            bufsize=0,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ReplicaStartError(f"{_command_of(request)} cannot be started: {error}") from error
    return HeldProcess(request, env, confines, child, order)


@cache
def _program() -> str:
    """The compiled file of `become`, where it may be read: it spares each start a compilation.

    Where root has run Rollway from the same folder, under the umask of a stack, it may not.
    """
    compiled = become.__spec__ and become.__spec__.cached
    return compiled if compiled and os.access(compiled, os.R_OK) else become.__file__


def _order_for(request: ReplicaRequest, env: Mapping[str, str], confines: Confines) -> bytes:
    """The order for `become`. Raises ValueError for words that a system cannot pass on."""
    account = confines.account
    is_own = account is not None and account.is_own
    command = [os.fsencode(word) for word in filled_in(request.spec.command or (), env)]
    environment = {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
    folder = os.fsencode(request.spec.working_directory) if request.spec.working_directory else None
    if any(b"\0" in text for text in (*command, *environment, *environment.values(), folder or b"")):
        raise ValueError("embedded null byte")
    return marshal.dumps(
        (
            (account.uid, account.gid, list(account.groups)) if account else None,
            0o077 if is_own else 0o022,  # its files are its deployment's, as its processes are
            confines.limits.to_set(is_own=is_own),
            folder,
            environment.get(b"PATH", os.fsencode(os.defpath)),
            command,
            environment,
        )
    )


def _write(descriptor: int, order: memoryview) -> int:
    try:
        return os.write(descriptor, order)
    except BrokenPipeError:
        return len(order)  # it is gone, and its report stays empty


def _command_of(request: ReplicaRequest) -> str:
    return f"the command {(request.spec.command or ('',))[0]!r} of revision {request.revision!r}"


def _trouble(why_not: bytes) -> str:
    if why_not.startswith(become.NO_INTERPRETER):
        name = why_not.removeprefix(become.NO_INTERPRETER).decode(errors="replace")
        ends = ": its lines end as on Windows, by CR LF" if name.endswith("\r") else ""
        return f"needs {name!r} to run, which was not found on this host{ends}" if name else "lacks its loader"
    return f"cannot be started: {os.strerror(int(why_not.removeprefix(become.TROUBLE)))}"


def _where(spec: RevisionSpec) -> str:
    """The folder in which a command with a path of its own was looked for, in words."""
    command = (spec.command or ("",))[0]
    if "/" not in command or Path(command).is_absolute():
        return ""
    unset = "" if spec.working_directory else ", as no working_directory is set"
    return f": it is looked for in {spec.working_directory or Path.cwd()}{unset}"
