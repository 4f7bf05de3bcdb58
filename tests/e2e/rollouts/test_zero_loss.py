"""The short form of `make zero-loss`: real stack, real Envoy, real load, and not one lost request."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stack.home.folder import project_root

pytestmark = pytest.mark.e2e

RATE, SECONDS = 200, 3


def test_no_request_is_lost_by_an_update_a_promotion_and_a_restart_of_the_xds_server(tmp_path: Path) -> None:
    result = tmp_path / "zero_loss.json"
    options = f"--rate {RATE} --seconds {SECONDS} --longest 1 --patience 60 --only rolling promotion xds"
    ended = subprocess.run(
        [sys.executable, "-m", "tools.bench.zero_loss", *options.split(), "--result", str(result)],
        cwd=project_root(),
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    document = json.loads(result.read_text())
    rolling, promotion, xds = document["phases"]
    assert [phase["broken"] for phase in (rolling, promotion, xds)] == [[], [], []]
    assert sum(phase["load"]["requests"] for phase in document["phases"]) >= 3 * RATE * SECONDS
    assert [sorted(phase["load"]["revisions"]) for phase in (rolling, promotion, xds)] == [
        ["v1", "v2"],
        ["v2", "v3"],
        ["v3", "v4"],
    ]
    assert promotion["old_after_promotion"] < 0
    assert rolling["drains"]["count"] == 4
    assert rolling["drains"]["never"] == 0
