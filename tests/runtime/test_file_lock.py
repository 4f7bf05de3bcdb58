"""The lock file of a home: one holder at a time, among threads and processes, and nobody waits for ever."""

import subprocess
import sys
from pathlib import Path

import pytest

from runtime.file_lock import file_lock, holder_of
from tests.support.runtimes import ROOT

HOLD = "import sys; from pathlib import Path; from runtime.file_lock import file_lock\n"
HOLD += "with file_lock(Path(sys.argv[1]), 1): print('held', flush=True); sys.stdin.read()"


def test_a_lock_that_another_process_holds_is_waited_for_and_then_held(tmp_path: Path) -> None:
    path, waits = tmp_path / "lock", list[str]()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdin
        assert other.stdout
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(TimeoutError, match=r"another process has held .*lock for 0\.1 s"), file_lock(path, 0.1):
            pass
        assert holder_of(path) == other.pid
        with file_lock(path, 10, on_wait=other.stdin.close):
            waits.append("held")
    with file_lock(path, 0.1, on_wait=lambda: waits.append("waited")):
        pass
    assert waits == ["held"]
    assert holder_of(path) is holder_of(tmp_path / "missing") is None
