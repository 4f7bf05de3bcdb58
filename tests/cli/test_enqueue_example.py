"""The example for services that have Celery and not Rollway, against a real worker."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stack.home import project_root
from tests.support.deployments import NOBODY, make_deployment
from tests.support.stack import Fleet

EXAMPLE = project_root() / "examples" / "enqueue_activate_revision.py"


@pytest.fixture
def fleet(database: str, redis_url: str, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(database, redis_url, tmp_path)
    yield fleet
    fleet.end()


def run(redis_url: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In a folder and an environment where nothing of Rollway can be imported."""
    program = f"""
import pathlib, runpy, sys
sys.path[:] = [folder for folder in sys.path if not (pathlib.Path(folder) / "tasks" / "app.py").exists()]
sys.argv = {[str(EXAMPLE), *arguments]!r}
try:
    import domain
except ImportError:
    runpy.run_path({str(EXAMPLE)!r}, run_name="__main__")
else:
    sys.exit("Rollway can be imported here: " + str(domain.__file__))
"""
    environment = {"PATH": os.environ["PATH"], "REDIS_URL": redis_url}
    command = [sys.executable, "-P", "-c", program]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.e2e
def test_it_activates_a_revision_and_prints_the_answer(fleet: Fleet, redis_url: str, tmp_path: Path) -> None:
    make_deployment(fleet.engine, "■■■")
    fleet.start_workers("worker1")
    done = run(redis_url, tmp_path, "web", "v2", "because")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"]["activation"] == "begun"
    refused = run(redis_url, tmp_path, "web", "v9")
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["error"]["code"] == "revision_not_found"


def test_without_redis_it_says_so_and_exits_3(tmp_path: Path) -> None:
    done = run(NOBODY, tmp_path, "web", "v2")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("REDIS_URL: Redis cannot be reached")


def test_with_wrong_arguments_it_explains_its_usage(tmp_path: Path) -> None:
    done = run(NOBODY, tmp_path, "web")
    assert done.returncode == 2
    assert done.stderr.startswith("usage: ")
