"""Why a new replica failed, as the end of its rollout tells it."""

from datetime import datetime, timedelta

import pytest

from domain.cycle.transitions import classify
from domain.handlers.deploying import DeployingProvisioningHandler
from domain.model.decision import Decision, Waits, WaitsFor
from domain.replicas.diagnosis import failure_in_short
from tests.support.pictures.pictures import NOW, deploying

WAIT = Decision.wait(Waits(WaitsFor.TIME, "1 new starting"))
PAST_DEADLINE = NOW + timedelta(minutes=30)


@pytest.mark.parametrize(
    ("decision", "failed_routes", "now", "said"),
    [
        (WAIT, 3, NOW, "3 new replicas failed, the limit is 3; last: no such file"),
        (WAIT, 1, PAST_DEADLINE, f"has passed; last: {WAIT.reason}; a new replica failed: no such file"),
        (Decision.give_up("all 3 green replicas failed"), 0, NOW, "failed; a new replica failed: no such file"),
    ],
)
def test_what_ends_a_rollout_names_what_its_last_failed_replica_failed_of(
    decision: Decision, failed_routes: int, now: datetime, said: str
) -> None:
    failing = deploying("■■|■", rollout={"failed_routes": failed_routes, "last_failure": "no such file"})
    handler = DeployingProvisioningHandler()
    assert classify(decision, failing, handler.transitions, handler.bounds(failing), now).reason.endswith(said)


@pytest.mark.parametrize(
    ("reason", "log", "said"),
    [
        ("its process ended with exit code 3", None, "its process ended with exit code 3"),
        ("its process ended", "a\n\n  b \n", "its process ended; its log ends: a / b"),
        ("its process ended", "1\n2\n3\n4\n5", "its process ended; its log ends: 2 / 3 / 4 / 5"),
        ("two\nlines", "", "two lines"),
        (
            "ended",
            "  File x\nModuleNotFoundError: No module named 'flask'\n1\n2\n3\n4\n5",
            "ended; its log says: ModuleNotFoundError: No module named 'flask'; its log ends: 2 / 3 / 4 / 5",
        ),
        (
            "ended",
            "ValueError: x\njava.io.IOException: no\nbye",
            "ended; its log says: java.io.IOException: no; its log ends: ValueError: x / bye",
        ),
        ("ended", "panic: no\n\ngoroutine 1", "ended; its log says: panic: no; its log ends: goroutine 1"),
        ("ended", "loading\nRuntimeError: CUDA", "ended; its log ends: loading / RuntimeError: CUDA"),
        ("ended", "no Error here\nbye", "ended; its log ends: no Error here / bye"),
        ("r" * 600, "l" * 160, "r" * 600 + "; its log ends: " + "l" * 160),
        ("r" * 800, "l" * 400, "r" * 599 + "…; its log ends: " + "l" * 159 + "…"),
    ],
)
def test_why_a_replica_failed_fits_into_one_line(reason: str, log: str | None, said: str) -> None:
    assert failure_in_short(reason, log) == said
