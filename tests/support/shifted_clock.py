"""Processes whose clock is wrong: a library that is loaded before libc shifts what they read, and nothing else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_SOURCE = Path(__file__).with_suffix(".c")


class ShiftedClock:
    """A clock that is off by `seconds`, for all processes that are started with `environment`; it may be set again."""

    def __init__(self, folder: Path, seconds: int) -> None:
        self._library = folder / "shifted_clock.so"
        self._file = folder / "shift"
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None or not sys.platform.startswith("linux"):
            pytest.skip("NO C COMPILER ON LINUX HERE, SO NO CLOCK CAN BE SHIFTED AND WRONG CLOCKS ARE NOT TESTED")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", self._library, _SOURCE, "-ldl"], check=True)
        folder.chmod(0o755)  # the embedded PostgreSQL has an account of its own
        self.set(seconds)

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "SHIFT_FILE": str(self._file)}

    def set(self, seconds: int) -> None:
        draft = self._file.with_suffix(".draft")
        draft.write_text(str(seconds))
        draft.replace(self._file)

    def now(self) -> float:
        """What such a process says that it is, in Unix seconds."""
        ask = [sys.executable, "-c", "import time; print(time.time())"]
        return float(
            subprocess.run(ask, env={**os.environ, **self.environment}, check=True, capture_output=True).stdout
        )
