"""Replicas that die when they meet on a device never do, though workers and replicas are killed in the middle."""

import random
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.people.soak_report import leave, size
from tests.support.stack.stack import ROOT, Fleet, service
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e

ON_A_DEVICE = """
import fcntl, os, pathlib, runpy, sys
device, deaths = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
held = os.open(device, os.O_RDWR | os.O_CREAT, 0o666)
try:
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    with deaths.open("a") as file:
        file.write(device.name + "\\n")
    sys.exit("CUDA out of memory")
assert os.environ["CUDA_VISIBLE_DEVICES"] == device.name.removeprefix("gpu")
sys.argv = sys.argv[3:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
IN_PLACE = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 1}}
ROLLOUTS = size("gpus", quick=2)


@pytest.fixture
def devices(tmp_path: Path) -> Path:
    """A folder of locks, which any user may take."""
    folder = tmp_path / "devices"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def on_a_device(devices: Path, version: str) -> dict[str, Any]:
    """The example service, which dies with "CUDA out of memory" on a device that another one holds."""
    example = service(VERSION=version)
    words = [str(devices / "gpu{gpu}"), str(devices / "deaths"), str(ROOT / "examples" / "http_service.py")]
    return {
        **example,
        "command": [sys.executable, "-c", ON_A_DEVICE, *words],
        "needs": {"gpu": 1},
        "release_seconds": 0,
    }


def answers_with(fleet: Fleet, name: str) -> bool:
    return name in fleet.answers("web")


def test_no_replica_meets_another_one_on_its_device(fleet: Fleet, devices: Path) -> None:
    dice = random.Random(57)
    fleet.start_workers("worker1", "worker2", ROLLWAY_HOST_RESOURCES="gpu=3")
    eventually(lambda: fleet.rows("SELECT FROM hosts WHERE resources <> '{}'"), what="the devices to be known")
    fleet.start_beat()
    fleet.ask("create_deployment", deployment="web", desired_replicas=3, policy=IN_PLACE)
    for name in ("v1", "v2"):
        fleet.ask("add_revision", deployment="web", name=name, spec=on_a_device(devices, name))
    fleet.activate("web", "v1")
    fleet.wait_until_ready("web", "v1", 3)
    for number in range(ROLLOUTS):
        name = ("v2", "v1")[number % 2]
        fleet.activate("web", name)
        eventually(partial(answers_with, fleet, name), what="a new replica in place of an old one")
        killed = dice.choice(("worker1", "worker2"))
        fleet.kill(killed)
        for process in dice.sample(fleet.replica_processes("web"), 1):
            with suppress(psutil.NoSuchProcess):  # it may be one that leaves
                process.kill()
        fleet.start_workers(killed, ROLLWAY_HOST_RESOURCES="gpu=3")
        fleet.wait_until_ready("web", name, 3)
    assert not (devices / "deaths").exists()
    assert [rollout["outcome"] for rollout in fleet.rollouts("web")] == ["completed"] * ROLLOUTS
    leave("gpus", rollouts=ROLLOUTS, faults=2 * ROLLOUTS)
