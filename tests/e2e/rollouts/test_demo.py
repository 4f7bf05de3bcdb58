"""`make demo`'s command keeps its promises, and leaves nothing running."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from stack.home.folder import project_root

NOWHERE = "http://127.0.0.1:1"
pytestmark = pytest.mark.e2e


def test_the_demo_keeps_its_promises_and_leaves_nothing_running(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "cli.main", "demo", "--json"],
        cwd=project_root(),
        # a proxy of the environment is not asked for what is here, and no server that others use is steered
        env={
            **os.environ,
            "TMPDIR": str(tmp_path),
            "http_proxy": NOWHERE,
            "ROLLWAY_URL": NOWHERE,
            "ROLLWAY_TOKEN": "x",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    document = json.loads(ended.stdout)
    assert document["ok"] is True
    canary = document["canary"]
    assert 3 <= canary["failed"] < canary["met"] < document["load"]["requests"]
    assert canary["failed"] == document["load"]["failed"]
    assert canary["judge"].startswith("failures: canary ")
    assert any(cycle["why"].startswith("the canary gets 10 % of the requests") for cycle in document["films"]["v4"])
    assert not [process for process in psutil.process_iter() if _uses(process, tmp_path)]


def _uses(process: psutil.Process, folder: Path) -> bool:
    try:
        told = process.environ()
        places = (told.get("ROLLWAY_HOME", ""), told.get("TMPDIR", ""))  # replicas are not told the home
        return any(str(folder) in place for place in places) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
