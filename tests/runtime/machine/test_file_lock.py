"""The lock file of a home: one holder at a time, among threads and processes, and nobody waits for ever."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runtime.machine.path_access import file_lock, holder_of, stuck_holder_of
from runtime.process.process_runtime import ProcessRuntime
from tests.support.stack.server_process import suspend
from tests.support.workers.runtimes import ROOT, request

HOLD = "import sys; from pathlib import Path; from runtime.machine.path_access import file_lock\n"
HOLD += "with file_lock(Path(sys.argv[1]), 1): print('held', flush=True); sys.stdin.read()"


@contextmanager
def held_elsewhere(path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Another process that holds the lock until its input ends."""
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        assert other.stdout.readline() == b"held\n"
        yield other


def test_a_lock_that_another_process_holds_is_waited_for_and_then_held(tmp_path: Path) -> None:
    path, waits = tmp_path / "lock", list[str]()
    with held_elsewhere(path) as other:
        assert other.stdin
        who = rf"process {other.pid} \(.*python.*\) has held .*lock for 0\.1 s"
        with pytest.raises(TimeoutError, match=who), file_lock(path, 0.1):
            pass
        assert holder_of(path) == stuck_holder_of(path) == other.pid
        with file_lock(path, 10, on_wait=other.stdin.close):
            waits.append("held")
    with file_lock(path, 0.1, on_wait=lambda: waits.append("waited")):
        pass
    assert waits == ["held"]
    assert holder_of(path) is stuck_holder_of(path) is holder_of(tmp_path / "missing") is None


def test_a_worker_that_is_stopped_while_it_starts_a_replica_loses_the_lock(
    replica_home: Path, runtime: ProcessRuntime
) -> None:
    runtime.start(request())  # makes the folder
    with held_elsewhere(replica_home / "replicas" / ".lock") as worker:
        suspend(worker.pid)
        assert runtime.start(request()).running
        assert worker.wait(10) == -signal.SIGKILL, "or it went on where it was stopped, beside who has the lock now"
