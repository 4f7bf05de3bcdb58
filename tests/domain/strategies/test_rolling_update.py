"""Rolling update, one cycle at a time: a picture, and what happens."""

import pytest

from domain.cycle.evaluator import EVALUATOR
from domain.model.states import Verdict
from tests.support.pictures.pictures import NOW, deploying, happens, route_id

IN_GRACE = 5.0
PAST_GRACE = 31.0


@pytest.mark.parametrize(
    ("picture", "n", "s", "u", "expected"),
    [
        # the budget
        ("■■■|", 3, 1, 1, "create 1, drain ■"),
        ("■■■|", 3, 0, 1, "drain ■"),
        ("■■|", 3, 0, 1, "create 1"),
        ("■■■|", 3, 1, 0, "create 1"),
        ("■■■|■", 3, 1, 0, "drain ■"),
        ("■■■|", 3, 3, 0, "create 3"),
        ("■■■|■■■", 3, 3, 0, "drain ■■■"),
        ("■■■|", 3, 1, 3, "create 1, drain ■■"),
        ("■■■|", 3, 1, 99, "create 1, drain ■■"),
        ("■■■|", 3, 99, 0, "create 3"),
        ("■■■■|", 4, "25%", "25%", "create 1, drain ■"),
        ("■■■■■■■■■■|", 10, "25%", "25%", "create 3, drain ■■"),
        ("■|", 1, "25%", "25%", "create 1"),
        ("■|", 1, "0%", "25%", "drain ■"),
        ("|", 1, "0%", "25%", "create 1"),
        # small and none
        ("■|", 1, 1, 0, "create 1"),
        ("■|◇", 1, 1, 0, "wait"),
        ("■|■", 1, 1, 0, "drain ■"),
        ("|■", 1, 1, 0, "completed"),
        ("|", 0, 1, 1, "completed"),
        ("■■|", 0, 1, 1, "drain ■■"),
        ("■■|", 0, 1, 0, "drain ■■"),
        ("|", 3, 1, 1, "create 3"),
        # what is starting blocks the wave, even if it will never come
        ("■■|◇", 3, 1, 1, "wait"),
        ("|■■◇", 3, 1, 1, "wait"),
        ("▲▲▲|◇", 3, 1, 1, "wait"),
        ("|■◇", 1, 1, 0, "wait"),
        ("|■■■◇", 3, 1, 1, "wait"),
        ("◇■■|", 3, 1, 1, "create 1, drain ◇"),
        # the sick go first, the eldest first among equals
        ("■▲■|", 3, 1, 1, "create 1, drain ▲"),
        ("■△▲|", 3, 1, 2, "create 1, drain ▲△"),
        ("■◇△▲|", 4, 1, 3, "create 1, drain ▲△◇"),
        ("■□▲|", 3, 1, 1, "create 1, drain □"),
        ("▲▲▲▲▲|", 3, 1, 1, "drain ▲▲▲"),
        ("▲▲▲▲▲|", 5, 1, 0, "create 1"),
        # what is on its way out does not count
        ("■■■~|~~", 3, 1, 1, "create 1, drain ■"),
        ("|■■■~", 3, 1, 1, "completed"),
        # desired changes in the middle
        ("■■|■", 5, 1, 1, "create 3"),
        ("■■|■■■", 2, 1, 1, "drain ■■"),
        ("|■■■", 2, 1, 1, "completed"),
        ("■|■■■", 3, 1, 1, "drain ■"),
        # new ones out of traffic are brought in first
        ("■■|□", 3, 1, 1, "promote □"),
        ("■■|□◇", 3, 1, 1, "promote □"),
    ],
)
@pytest.mark.parametrize("status_for", [IN_GRACE, PAST_GRACE])
def test_wave(picture: str, n: int, s: int | str, u: int | str, expected: str, status_for: float) -> None:
    deployment = deploying(picture, n, s, u, status_for=status_for)
    assert happens(deployment, EVALUATOR.evaluate_one(deployment, NOW)) == expected


@pytest.mark.parametrize(
    ("picture", "n", "s", "u", "expected"),
    [
        ("■■■|", 3, 1, 1, "create 1, drain ■"),
        ("■■|◇", 3, 1, 1, "create 1"),
        ("■■|◇◇", 3, 1, 1, "wait"),
        ("■■|■◇", 3, 1, 1, "drain ■"),
        ("|■■◇", 3, 1, 1, "wait"),
        ("|■■■", 3, 1, 1, "completed"),
        ("■■■|◇◇", 5, 2, 0, "create 2"),
        ("■■■■■|◇◇", 5, 2, 0, "wait"),
        ("▲▲▲|", 3, 1, 1, "create 1, drain ▲▲▲"),
        ("■▲◇|", 3, 1, 1, "create 1, drain ▲◇"),
        ("■□|", 3, 1, 1, "create 2, drain □"),
        ("■■■|", 3, 0, 1, "drain ■"),
        ("■■|", 3, 0, 1, "create 1"),
        ("■■■|", 3, 1, 0, "create 1"),
        ("■■■|■", 3, 1, 0, "drain ■"),
        ("■|", 1, 0, 1, "drain ■"),
        ("|", 1, 0, 1, "create 1"),
        ("|", 0, 1, 1, "completed"),
        ("■■|■■■", 2, 1, 1, "drain ■■"),
        ("■■|■", 5, 1, 1, "create 3"),
        ("|■◇◇", 2, 1, 1, "wait"),
    ],
)
def test_continuous(picture: str, n: int, s: int | str, u: int | str, expected: str) -> None:
    deployment = deploying(picture, n, s, u, spec={"pacing": "continuous"})
    assert happens(deployment, EVALUATOR.evaluate_one(deployment, NOW)) == expected


@pytest.mark.parametrize(
    ("picture", "pacing", "in_grace", "past_grace"),
    [
        ("■■|▲", "wave", "create 1", "create 1, drain ▲"),
        ("■■|■▲", "wave", "drain ■", "drain ■▲"),
        ("■■■|▲", "wave", "drain ■", "drain ■▲"),
        ("|■■▲", "wave", "create 1", "create 1, drain ▲"),
        ("|■■▲▲", "wave", "wait", "drain ▲▲"),
        ("|■■■▲", "wave", "completed", "completed"),
        ("|■■▲", "continuous", "wait", "drain ▲"),
    ],
)
def test_a_sick_new_replica_counts_and_is_replaced_when_its_grace_ends(
    picture: str, pacing: str, in_grace: str, past_grace: str
) -> None:
    for status_for, expected in ((IN_GRACE, in_grace), (PAST_GRACE, past_grace)):
        deployment = deploying(picture, status_for=status_for, spec={"pacing": pacing})
        assert happens(deployment, EVALUATOR.evaluate_one(deployment, NOW)) == expected


def test_the_eldest_of_equals_is_drained_first() -> None:
    deployment = deploying("■■■|", 3, 0, 2)
    assert EVALUATOR.evaluate_one(deployment, NOW).changes.drain_route_ids == (route_id(0), route_id(1))


def test_a_wait_says_the_inequality_that_blocks_it() -> None:
    reason = EVALUATOR.evaluate_one(deploying("■■|◇◇", spec={"pacing": "continuous"}), NOW).reason
    assert "4 live of at most 4" in reason
    assert "2 serving, 2 to keep" in reason


def test_a_paused_rollout_waits_for_a_person() -> None:
    decision = EVALUATOR.evaluate_one(deploying("■■■|", paused_at=NOW), NOW)
    assert (decision.verdict, decision.clock_stopped, bool(decision.changes)) == (Verdict.SKIPPED, True, False)


def test_a_failed_new_replica_is_in_no_bucket_and_is_created_again() -> None:
    deployment = deploying("■■|✗", 3, 1, 1)
    assert happens(deployment, EVALUATOR.evaluate_one(deployment, NOW)) == "create 2"
