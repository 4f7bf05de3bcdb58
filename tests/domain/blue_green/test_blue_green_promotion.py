"""Green is promoted: at once, after a delay, or when a person says so."""

from datetime import timedelta

import pytest

from domain.cycle.evaluator import EVALUATOR
from domain.cycle.transitions import RevisionMove
from domain.handlers.dispatch import cycle
from domain.model.picture import picture as drawn
from domain.model.states import RouteStatus, TrafficStatus, Verdict
from domain.planning.simulator import with_status
from tests.support.pictures.blue_green import AUTO, DELAYED, IN_GRACE, MANUAL, PAST_GRACE, asked, step
from tests.support.pictures.pictures import NOW, PROVISIONING, READY, V1, V2, deploying, happens, route_id
from tests.support.pictures.simulation import all_started, applied


def test_promotion_is_one_decision_from_one_snapshot_with_swap_and_ready() -> None:
    decision = cycle(deploying("■■■|□□□", policy=AUTO), NOW)
    assert (decision.verdict, decision.to, decision.revision) == (Verdict.SUCCESS, READY, RevisionMove.SWAP)
    assert happens(decision.deployment, EVALUATOR.evaluate_one(decision.deployment, NOW)).endswith(
        "promote □□□, drain ■■■"
    )
    after = applied(decision, NOW)
    assert (after.current_revision_id, after.rollout, drawn(after.routes, V2, None)) == (V2, None, "■■■")


@pytest.mark.parametrize(
    ("status_for", "expected"), [(5, "wait"), (19, "wait"), (20, "completed: promote □□□, drain ■■■")]
)
def test_the_promote_delay_counts_from_the_newest_healthy_green(status_for: float, expected: str) -> None:
    deployment = deploying("■■■|□◌□", policy=DELAYED)
    deployment = with_status(deployment, [route_id(4)], RouteStatus.HEALTHY, NOW - timedelta(seconds=status_for))
    decision = EVALUATOR.evaluate_one(deployment, NOW)
    assert happens(deployment, decision) == expected
    if expected == "wait":
        assert decision.recheck_at == NOW + timedelta(seconds=20 - status_for)
        assert f"promoted in {20 - status_for:.0f} s" in decision.reason


def test_with_no_replica_wanted_the_promote_delay_waits_for_nobody() -> None:
    assert step(deploying("■|", 0, policy=DELAYED)) == "completed: drain ■"


def test_a_manual_promotion_waits_for_a_person_without_a_deadline() -> None:
    deployment = deploying("■■■|□□□", policy=MANUAL)
    decision = cycle(deployment, NOW)
    assert (decision.verdict, decision.clock_stopped, decision.due_at) == (Verdict.SKIPPED, True, None)
    assert "'rollway promote web'" in decision.reason
    assert step(asked(deployment)) == "completed: promote □□□, drain ■■■"


def test_trap_a_manual_promotion_is_never_rolled_back_by_a_generic_timeout() -> None:
    deployment = deploying("■■■|□□□", policy=MANUAL)
    for day in range(3):
        now = NOW + timedelta(days=day, seconds=5)
        decision = cycle(deployment, now)
        assert (decision.to, decision.clock_stopped) == (PROVISIONING, True)
        deployment = applied(decision, now)
    assert cycle(asked(deployment), NOW + timedelta(days=3)).to == READY


def test_while_it_waits_for_a_person_blue_is_healed_and_no_clock_runs() -> None:
    deployment = applied(cycle(deploying("■■■|□□□", policy=MANUAL), NOW), NOW)
    late = NOW + timedelta(days=2)
    deployment = with_status(deployment, [route_id(0)], RouteStatus.FAILED, late)
    decision = cycle(deployment, late)
    assert (decision.verdict, decision.clock_stopped, decision.due_at) == (
        Verdict.SKIPPED,
        True,
        late + timedelta(seconds=2),
    )
    late += timedelta(seconds=2)
    decision = cycle(applied(decision, late), late)
    assert (decision.verdict, decision.to, decision.clock_stopped) == (Verdict.NEED_RETRY, PROVISIONING, True)
    assert {(spec.revision_id, spec.traffic) for spec in decision.changes.rollout_specs} == {(V1, TrafficStatus.ACTIVE)}
    deployment = all_started(applied(decision, late), late)
    assert drawn(deployment.routes, V1, V2) == "■■■|□□□"
    assert cycle(deployment, late + timedelta(days=2)).verdict is Verdict.SKIPPED


def test_a_sick_blue_is_looked_at_when_its_grace_ends_even_while_it_waits_for_a_person() -> None:
    deployment = deploying("■▲■|□□□", policy=MANUAL, status_for=IN_GRACE)
    assert cycle(deployment, NOW).due_at == NOW + timedelta(seconds=25)
    assert step(deploying("■▲■|□□□", policy=MANUAL, status_for=PAST_GRACE)) == "drain ▲"


def test_a_promotion_that_was_asked_for_early_comes_as_soon_as_green_is_healthy() -> None:
    for policy in (MANUAL, DELAYED):
        deployment = asked(deploying("■■■|□□◌", policy=policy, status_for=1))
        assert step(deployment) == "wait"
        assert step(all_started(deployment, NOW)) == "completed: promote □□□, drain ■■■"


def test_green_that_sickens_after_it_was_complete_is_not_promoted_but_repaired() -> None:
    complete = deploying("■■■|□□□", policy=MANUAL)
    sick = asked(with_status(complete, [route_id(3)], RouteStatus.UNHEALTHY, NOW))
    assert step(sick) == "wait"
    assert step(asked(deploying("■■■|▲□□", policy=MANUAL))) == "drain ▲"


def test_no_clock_runs_while_green_waits_for_a_person_though_blue_goes_meanwhile() -> None:
    """Scaled to nothing: green is complete without a replica, and blue is one too many."""
    scaled = deploying("■|", 0, policy=MANUAL)
    decision = cycle(scaled, NOW)
    assert (happens(scaled, EVALUATOR.evaluate_one(scaled, NOW)), decision.clock_stopped) == ("drain ■", True)
    left = applied(decision, NOW).rollout
    assert left is not None
    assert left.clock_stopped_at == NOW
