"""Rolling update where stops are slow: stopping replicas count when the policy says so."""

import pytest

from domain.cycle.evaluator import EVALUATOR
from tests.support.pictures.pictures import NOW, V2, deploying, happens
from tests.support.pictures.simulation import world_of


@pytest.mark.parametrize(
    ("picture", "n", "s", "u", "pacing", "not_counted", "counted"),
    [
        # no surge: what was drained must be gone before its place is taken
        ("■■|", 2, 0, 1, "wave", "drain ■", "drain ■"),
        ("■~|", 2, 0, 1, "wave", "create 1", "wait"),
        ("■|", 2, 0, 1, "wave", "create 1", "create 1"),
        ("■~|■", 3, 0, 1, "continuous", "create 1", "wait"),
        # surge: stopping ones use it up, drains go on as far as enough serve
        ("■■~|■", 3, 1, 1, "wave", "create 1, drain ■", "drain ■"),
        ("■~~|■", 3, 1, 1, "wave", "create 2", "wait"),
        ("■~|■", 3, 1, 1, "wave", "create 2", "create 1"),
        ("■~~|■◇", 3, 1, 1, "continuous", "create 1", "wait"),
        ("■~|■◇", 3, 2, 1, "continuous", "create 1", "create 1"),
        # of the new revision too, whatever made them stop
        ("■■|~~", 3, 1, 1, "wave", "create 2", "wait"),
        ("■■|~~", 3, 2, 1, "continuous", "create 3", "create 1"),
        # they hold up nothing else
        ("|■■■~", 3, 1, 1, "wave", "completed", "completed"),
        ("~~~|■■■", 3, 1, 1, "continuous", "completed", "completed"),
        ("~■|□", 3, 1, 1, "wave", "promote □", "promote □"),
    ],
)
def test_replicas_that_are_stopping_count_when_the_policy_says_so(
    picture: str, n: int, s: int, u: int, pacing: str, not_counted: str, counted: str
) -> None:
    for count_stopping, expected in ((False, not_counted), (True, counted)):
        deployment = deploying(picture, n, s, u, spec={"pacing": pacing, "count_stopping": count_stopping})
        assert happens(deployment, EVALUATOR.evaluate_one(deployment, NOW)) == expected


def test_a_wait_for_a_stopping_replica_says_so_with_its_inequality() -> None:
    reason = EVALUATOR.evaluate_one(deploying("■~|", 2, 0, 1, spec={"count_stopping": True}), NOW).reason
    assert "no room to create (1 live + 1 stopping of at most 2)" in reason
    reason = EVALUATOR.evaluate_one(deploying("■~|■", 3, 1, 1, spec={"count_stopping": True}), NOW).reason
    assert "creating 1 new (2 live + 1 stopping + 1 ≤ 4)" in reason


@pytest.mark.parametrize("pacing", ["wave", "continuous"])
@pytest.mark.parametrize(("n", "s", "u"), [(2, 0, 1), (3, 1, 1), (3, 1, 0), (5, 2, 2), (1, 1, 0), (1, 0, 1)])
def test_with_slow_stops_live_and_stopping_stay_within_the_ceiling(n: int, s: int, u: int, pacing: str) -> None:
    spec = {"pacing": pacing, "count_stopping": True}
    world = world_of(deploying("■" * n + "|", n, s, u, spec=spec), stop_seconds=60)
    world.run(seconds=1800)
    assert world.deployment.current_revision_id == V2
    assert world.created == n
    assert max(len(look.decision.deployment.routes) for look in world.looks) <= n + s
