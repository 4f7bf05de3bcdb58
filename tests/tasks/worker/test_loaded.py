"""Workers, beat and Flower start fast: what they need is loaded, and no more."""

import os
import subprocess
import sys

import pytest

_ENVIRONMENT = {"REDIS_URL": "redis://127.0.0.1:1/0", "DATABASE_URL": "postgresql://127.0.0.1:1/nobody"}


def _loaded(program: str, names: tuple[str, ...]) -> str:
    said = f"{program}\nprint('loaded:', *(name for name in {names} if name in sys.modules))"
    environment = os.environ | _ENVIRONMENT
    done = subprocess.run([sys.executable, "-c", said], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("command", ["worker", "beat"])
def test_a_command_of_celerys_loads_neither_its_others_nor_flower(command: str) -> None:
    program = f"""
import sys
from tasks.__main__ import main

sys.argv[1:] = [{command!r}, "--help"]
try:
    main()
except SystemExit:
    pass
"""
    assert _loaded(program, ("celery.bin.celery", "celery.bin.shell", "flower", "tornado")) == "loaded:"


def test_beat_and_flower_load_no_commands() -> None:
    program = "import sys, tasks.app, tasks.worker.beat, tasks.worker.transport; tasks.app.app.conf.task_routes"
    assert _loaded(program, ("domain.commands.registry", "domain.outbox.delivery")) == "loaded:"
