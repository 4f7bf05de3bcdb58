"""Processes whose clock is wrong: a library that is loaded before libc shifts what they read, and nothing else."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

_SOURCE = Path(__file__).with_suffix(".c")


@contextmanager
def shifted_clock() -> Iterator["ShiftedClock"]:
    """One that is right at first. The test is skipped where there is none. Its folder may be read by any account."""
    with TemporaryDirectory(prefix="rollway-clock-") as folder:
        Path(folder).chmod(0o755)
        yield ShiftedClock(Path(folder))


class ShiftedClock:
    """The clock of all processes that are started with `environment`; it may be set while they run."""

    def __init__(self, folder: Path) -> None:
        self._library = folder / "shifted_clock.so"
        self._file = folder / "shift"
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None or not sys.platform.startswith("linux"):
            pytest.skip("NO C COMPILER ON LINUX HERE, SO NO CLOCK CAN BE SHIFTED AND WRONG CLOCKS ARE NOT TESTED")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", self._library, _SOURCE, "-ldl"], check=True)
        self._library.chmod(0o755)  # PostgreSQL may run under an account of its own
        self.set(0)

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "SHIFT_FILE": str(self._file)}

    def set(self, seconds: int) -> None:
        """From now on it is off by so many seconds."""
        draft = self._file.with_suffix(".draft")
        draft.write_text(str(seconds))
        draft.chmod(0o644)
        draft.replace(self._file)

    def now(self) -> float:
        """What such a process says that it is, in Unix seconds."""
        ask = [sys.executable, "-c", "import time; print(time.time())"]
        return float(
            subprocess.run(ask, env={**os.environ, **self.environment}, check=True, capture_output=True).stdout
        )
