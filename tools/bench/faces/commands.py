"""What a command line costs in processor time, from the start of Python to its end; with servers where it asks them."""

import os
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from tools.bench.passes import in_turns
from tools.bench.stage import stage

COMMANDS = ("--version", "--help", "status --help", "status", "status web", "history web", "scale web 1")


def measure(*, full: bool) -> dict[str, Any]:
    """Seconds of each command; the first run of each, which may compile what it imports, is not counted."""
    with stage() as made:
        made.ask("create_deployment", deployment="web", desired_replicas=1)
        taken = in_turns(1 + (20 if full else 7), COMMANDS, lambda command: _seconds(command, made.environment))
    counted = {command: seconds[1:] for command, seconds in taken.items()}
    rows = [
        {"command": f"rollway {command}", "median_s": median(seconds), "least_s": min(seconds)}
        for command, seconds in counted.items()
    ]
    return {"rows": rows, "passes": {f"seconds, {command}": seconds for command, seconds in counted.items()}}


def _seconds(command: str, environment: dict[str, str]) -> float:
    program = Path(sys.executable).with_name("rollway")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, *command.split()], env={**os.environ, **environment}, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
