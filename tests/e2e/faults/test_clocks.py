"""A machine whose clock is wrong, or is set while all runs: nothing waits for it; too far off it gets no replicas."""

from collections.abc import Iterator
from pathlib import Path
from time import time

import psutil
import pytest

from runtime.process.termination import stop_all
from tests.support.faults.shifted_clock import ShiftedClock, shifted_clock
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e

TWO_HOURS = 7200


@pytest.fixture
def home_of_west(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "home-west"
    yield home
    stop_all(home, grace_seconds=2)


@pytest.fixture
def clock() -> Iterator[ShiftedClock]:
    with shifted_clock() as clock:
        yield clock


@pytest.fixture
def west(fleet: Fleet, home_of_west: Path, clock: ShiftedClock) -> Fleet:
    """Worker and beat on a machine of this clock, and two replicas of v0."""
    there = {"ROLLWAY_HOME": str(home_of_west), "ROLLWAY_HOST_ADDRESS": "127.0.0.2"}
    fleet.start_workers("worker-west", host="west", **(clock.environment | there))
    fleet.start_beat(**clock.environment)
    fleet.deploy_first(replicas=2)
    return fleet


def wait_until_measured(fleet: Fleet, seconds: int) -> None:
    near = "SELECT name FROM hosts WHERE name = 'west' AND abs(clock_offset_seconds - %s) < 1"
    eventually(lambda: fleet.rows(near, seconds), what="the offset to be measured")


def replace_a_killed_one(fleet: Fleet, revision: str) -> None:
    failed = len(fleet.routes("web", "failed"))
    psutil.Process(int(fleet.routes("web")[0]["replica_handle"].removeprefix("pid:"))).kill()
    eventually(lambda: len(fleet.routes("web", "failed")) == failed + 1, what="its end to be noticed")
    fleet.wait_until_ready("web", revision, 2)


def roll_out(fleet: Fleet, revision: str) -> set[str]:
    """The hosts that the replicas are on then."""
    fleet.add_revision("web", revision)
    fleet.activate("web", revision)
    fleet.wait_until_ready("web", revision, 2)
    return {route["host"] for route in fleet.routes("web")}


def test_however_wrong_the_clock_of_a_worker_is_replicas_are_replaced_and_rollouts_end_as_usual(
    west: Fleet, clock: ShiftedClock, subtests: pytest.Subtests
) -> None:
    before = "v1"
    for seconds in (-10, 2, 30, TWO_HOURS):
        with subtests.test(seconds=seconds):
            clock.set(seconds)
            assert abs(clock.now() - time() - seconds) < 2
            wait_until_measured(west, seconds)
            replace_a_killed_one(west, before)
            before = f"at {seconds}".replace(" ", "-")
            assert roll_out(west, before) == {"west"}, "with one host it may be the database that is wrong"

    west.start_workers("worker-east", host="east")
    eventually(lambda: len(west.rows("SELECT name FROM hosts")) == 2, what="both hosts to be known")
    assert roll_out(west, "too-far") == {"east"}
    clock.set(2)
    wait_until_measured(west, 2)
    assert roll_out(west, "near-enough") == {"east", "west"}
    replace_a_killed_one(west, "near-enough")  # beat's machine was set back by two hours, and ticks go on
