"""What a command line costs in processor time, from the start of Python to its end; with servers where it asks them."""

import os
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from bench.stage import stage

COMMANDS = ("--version", "--help", "status --help", "status", "status web", "history web", "scale web 1")


def measure(*, full: bool) -> dict[str, Any]:
    """Seconds of each command; the first run of each, which may compile what it imports, is not counted."""
    with stage() as made:
        made.ask("create_deployment", deployment="web", desired_replicas=1)
        rows = [_row(command, made.environment, times=20 if full else 7) for command in COMMANDS]
    return {"rows": rows}


def _row(command: str, environment: dict[str, str], times: int) -> dict[str, Any]:
    taken = [_seconds(command, environment) for _ in range(times + 1)][1:]
    return {"command": f"rollway {command}", "median_s": median(taken), "least_s": min(taken)}


def _seconds(command: str, environment: dict[str, str]) -> float:
    program = Path(sys.executable).with_name("rollway")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, *command.split()], env={**os.environ, **environment}, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
