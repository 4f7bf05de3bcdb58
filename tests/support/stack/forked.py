"""Processes of ours, forked from one that has imported all they need: an import takes a second of each start.

`python -m tests.support.stack.forked PATH` listens at a Unix socket. Each is told a module, its arguments and its
environment, runs it as `python -m` does, and is real in every other way.
"""

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, NoReturn

from tests import times

PRELOADED = {
    "tasks": (
        *("celery.bin.worker", "celery.bin.beat", "tasks.app", "tasks.lifecycle", "tasks.route_lifecycle"),
        *("tasks.command_tasks", "tasks.housekeeping", "tasks.worker.beat", "tasks.worker.transport"),
    ),
    "api": ("api.proxy_app", "api.serving"),
    "api.people": ("api.people.people_app",),
}
"""What each module that may be run imports: nothing that reads a setting."""
_UNLIKE = ("LD_PRELOAD", "PYTHONPATH", "PYTHONSTARTUP")
"""What an interpreter reads when it begins."""


class Forked:
    """A process, as a Popen has it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lines = connection.makefile("rb")
        self.pid = int(self._lines.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code; negative for a signal. Raises TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("forked", timeout or 0)
            ended = json.loads(self._lines.readline() or '{"code": -9, "processor": 0}')
            self.returncode = int(ended["code"])
            times.add(ended["processor"])
            self._lines.close()
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Nothing happens when it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start(
    command: Sequence[str], env: Mapping[str, str], cwd: Path, log: IO[bytes]
) -> "Forked | subprocess.Popen[bytes]":
    """Start the command in a session of its own; forked where it is `python -m` and one of ours."""
    begin, (module, *arguments) = tuple(command[:2]), command[2:] or [""]
    is_like_us = begin == (sys.executable, "-m") and cwd == Path.cwd() and not env.keys() & set(_UNLIKE)
    if not (is_like_us and module in PRELOADED):
        return subprocess.Popen(command, cwd=cwd, env=dict(env), stdout=log, stderr=log, start_new_session=True)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(_server())
    request = json.dumps([module, arguments, dict(env)]).encode()
    socket.send_fds(connection, [len(request).to_bytes(8, "big")], [log.fileno()])
    connection.sendall(request)
    return Forked(connection)


@cache
def _server() -> str:
    """The path of the server of this process; it ends with us, when its standard input does."""
    folder = Path(tempfile.mkdtemp(prefix="forked-"))
    path = folder / "s"
    server = subprocess.Popen([sys.executable, "-m", __name__, str(path)], stdin=subprocess.PIPE)
    while not path.exists():
        assert server.poll() is None, "the server of forked processes has ended"
        time.sleep(0.01)

    def end() -> None:
        assert server.stdin
        server.stdin.close()
        server.wait()
        path.unlink(missing_ok=True)
        folder.rmdir()

    atexit.register(end)
    return str(path)


def _serve(path: str) -> None:
    for names in PRELOADED.values():
        for name in names:
            import_module(name)
    gc.freeze()
    listener, children = socket.socket(socket.AF_UNIX), dict[int, socket.socket]()
    wakeup, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker)
    draft = f"{path}.draft"
    listener.bind(draft)
    listener.listen(64)
    Path(draft).rename(path)
    while True:
        readable, _, _ = select.select([listener, wakeup, sys.stdin], [], [])
        if sys.stdin in readable:
            return
        if wakeup in readable:
            os.read(wakeup, 4096)
            _reap(children)
        if listener in readable:
            connection, _ = listener.accept()
            module, arguments, env, log = _read(connection)
            pid = os.fork()
            if not pid:
                for other in (listener, connection, *children.values()):
                    other.close()
                _become(module, arguments, env, log)
            os.close(log)
            children[pid] = connection
            connection.sendall(f"{pid}\n".encode())


def _read(connection: socket.socket) -> tuple[str, list[str], dict[str, str], int]:
    head, (log,), _, _ = socket.recv_fds(connection, 8, 1)
    length, text = int.from_bytes(head, "big"), b""
    while len(text) < length:
        text += connection.recv(length - len(text))
    module, arguments, env = json.loads(text)
    return module, arguments, env, log


def _reap(children: dict[int, socket.socket]) -> None:
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        ended = {"code": os.waitstatus_to_exitcode(status), "processor": usage.ru_utime + usage.ru_stime}
        with children.pop(pid) as connection, suppress(OSError):
            connection.sendall(json.dumps(ended).encode() + b"\n")


def _become(module: str, arguments: list[str], env: dict[str, str], log: int) -> NoReturn:
    """Run the module as if this process had begun with it."""
    code: object = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for ours, theirs in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(ours, theirs)
        os.closerange(3, 64)
        os.environ.clear()
        os.environ.update(env)
        time.tzset()
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        sys.argv[1:] = arguments
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001 -- as an interpreter does
        sys.excepthook(*sys.exc_info())
    finally:
        if isinstance(code, str):
            sys.stderr.write(f"{code}\n")
            code = 1
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


if __name__ == "__main__":
    _serve(sys.argv[1])
