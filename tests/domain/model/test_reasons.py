"""Why: the sentence of each step, with the numbers that allow or block it, and when the next look is due."""

from typing import Any

import pytest

from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment
from domain.model.policy import RolloutLimits
from tests.support.pictures.pictures import NOW, RECREATE, blue_green, deploying, resting, rolling_back

DEADLINE = 30 * 60
"""Seconds until the next look where nothing but the end of the rollout's time can change the answer."""
READY_IN_30: dict[str, Any] = {"status_for": 1, "spec": {"min_ready_seconds": 30}}
SICK_FOR_10: dict[str, Any] = {"status_for": 10}
BLOCKED = (
    "waiting: {ready} of 3 new ready, 0 starting, 1 unhealthy; no room to create ({live} live of at most {live}), "
    "nothing to spare ({serving} serving, {serving} to keep)"
)
GREEN = blue_green(auto_promote=True, promote_delay_seconds=60)


def why(deployment: Deployment) -> tuple[str, float | None]:
    classified = cycle(deployment, NOW)
    due = classified.due_at
    return classified.reason, None if due is None else (due - NOW).total_seconds()


def continuous(
    picture: str, n: int = 3, s: int = 1, u: int = 0, *, status_for: float = 3600, **spec: Any
) -> Deployment:
    return deploying(picture, n, s, u, status_for=status_for, spec={"pacing": "continuous", **spec})


@pytest.mark.parametrize(
    ("deployment", "reason", "due"),
    [
        (deploying("■■■|"), "creating 1 new (3 live + 1 ≤ 4), draining 1 (at least 2 of 3 stay)", DEADLINE),
        (deploying("■■■|", s=2), "creating 2 new (3 live + 2 ≤ 5), draining 1 (at least 2 of 3 stay)", DEADLINE),
        (deploying("▲▲|■▲", u=0), "draining 1 (at least 3 of 3 stay)", 0),
        (deploying("■■|■◇"), "waiting: 1 new starting; 1 of 3 ready", DEADLINE),
        (
            deploying("■■|■", u=0, **READY_IN_30),
            "waiting: 1 healthy, but not for min_ready_seconds yet; 0 of 3 ready",
            29,
        ),
        (
            deploying("■■|■◇", u=0, **READY_IN_30),
            "waiting: 1 new starting and 1 healthy, but not for min_ready_seconds yet; 0 of 3 ready",
            29,
        ),
        (
            deploying("■|■■▲", u=0, **SICK_FOR_10),
            BLOCKED.format(ready=2, live=4, serving=3),
            20,
        ),
        (deploying("|■■■"), "all 3 replicas run the new revision", 0),
        (deploying("|■", n=1), "the one replica runs the new revision", 0),
        (deploying("■■|■◇", limits=RolloutLimits(timeout_seconds=60)), "waiting: 1 new starting; 1 of 3 ready", 60),
    ],
)
def test_of_a_rolling_update(deployment: Deployment, reason: str, due: float) -> None:
    assert why(deployment) == (reason, due)


@pytest.mark.parametrize(
    ("deployment", "reason", "due"),
    [
        (continuous("■|◇", s=2), "creating 2 new (2 live + 2 ≤ 5)", DEADLINE),
        (continuous("■■■|"), "creating 1 new (3 live + 1 ≤ 4)", DEADLINE),
        (continuous("■■|■■"), "draining 1 (at least 3 of 3 stay)", 0),
        (
            continuous("■|■▲", s=0, u=1, **SICK_FOR_10),
            BLOCKED.format(ready=1, live=3, serving=2),
            20,
        ),
    ],
)
def test_of_a_continuous_one(deployment: Deployment, reason: str, due: float) -> None:
    assert why(deployment) == (reason, due)


@pytest.mark.parametrize(("min_ready_seconds", "due"), [(15, 5), (20, 10), (60, 20)])
def test_the_next_look_is_when_the_first_can_have_changed_a_ready_one_or_a_sick_one(
    min_ready_seconds: float, due: float
) -> None:
    assert why(continuous("■|▲■■", min_ready_seconds=min_ready_seconds, **SICK_FOR_10))[1] == due


@pytest.mark.parametrize(
    ("deployment", "reason", "due"),
    [
        (deploying("■■■|", policy=RECREATE), "draining 3 old", DEADLINE),
        (
            deploying("~~|", policy=RECREATE),
            "waiting: 2 old still stopping, and none may be when a new one starts",
            DEADLINE,
        ),
        (deploying("|■", policy=RECREATE), "creating 2 new (1 live + 2 ≤ 3)", DEADLINE),
        (deploying("|■■◇", policy=RECREATE), "waiting: 2 of 3 new ready; 3 live of at most 3", DEADLINE),
        (deploying("|■■▲", policy=RECREATE, **SICK_FOR_10), "waiting: 2 of 3 new ready; 3 live of at most 3", 20),
        (deploying("|■■■", policy=RECREATE), "all 3 replicas run the new revision", 0),
        (rolling_back("■|■■", policy=RECREATE), "draining 2 (at least 0 of 3 stay)", 0),
        (
            rolling_back("|~~", policy=RECREATE),
            "waiting: 0 of 3 ready, 0 starting, 0 unhealthy, 0 of other revisions; 0 live + 2 stopping of at most 3",
            None,
        ),
    ],
)
def test_of_a_recreation(deployment: Deployment, reason: str, due: float | None) -> None:
    assert why(deployment) == (reason, due)


@pytest.mark.parametrize(
    ("deployment", "reason", "due"),
    [
        (resting("■■▲"), "creating 1 (3 live + 1 ≤ 4)", DEADLINE),
        (resting("■■▲■", **SICK_FOR_10), "draining 1 (at least 3 of 3 stay)", 0),
        (resting("■■■"), "3 of 3 replicas healthy", 0),
        (resting("■", n=1), "1 of 1 replica healthy", 0),
        (
            resting("■■◇"),
            "waiting: 2 of 3 ready, 1 starting, 0 unhealthy, 0 of other revisions; 3 live of at most 4",
            DEADLINE,
        ),
        (
            resting("■■▲", **SICK_FOR_10),
            "waiting: 2 of 3 ready, 0 starting, 1 unhealthy, 0 of other revisions; 3 live of at most 4",
            20,
        ),
        (resting("■■■■"), "draining 1 (at least 3 of 3 stay)", 0),
        (resting("□|■■■"), "draining 1 (at least 3 of 3 stay)", 0),
        (rolling_back("■■|■"), "creating 1 (3 live + 1 ≤ 4), draining 1 (at least 2 of 3 stay)", 0),
    ],
)
def test_of_converging(deployment: Deployment, reason: str, due: float) -> None:
    assert why(deployment) == (reason, due)


@pytest.mark.parametrize(
    ("deployment", "reason", "due"),
    [
        (deploying("■■■|", policy=GREEN), "creating 3 green out of traffic (0 of 3 green healthy)", DEADLINE),
        (deploying("■■■|□□◌", policy=GREEN), "waiting: 2 of 3 green healthy, 1 starting", DEADLINE),
        (deploying("■■■|□□▲", policy=GREEN, **SICK_FOR_10), "waiting: 2 of 3 green healthy, 1 unhealthy", 20),
        (deploying("■■■|□□□", policy=GREEN, status_for=1), "waiting: green is healthy, promoted in 59 s", 59),
        (deploying("■■■|□□□", policy=GREEN), "promoted: 3 green in, 3 blue out", 0),
        (
            deploying("■■■|□□□", policy=blue_green()),
            "waiting: green is healthy; 'rollway promote web' continues",
            None,
        ),
    ],
)
def test_of_blue_and_green(deployment: Deployment, reason: str, due: float | None) -> None:
    assert why(deployment) == (reason, due)
