"""What must hold of every wait, whatever the snapshot: it waits for something that comes, and not for itself."""

from hypothesis import example, given

from domain.handlers.dispatch import cycle
from domain.model.states import RouteStatus, Verdict
from tests.support.pictures.pictures import NOW, resting, rolling_back
from tests.support.pictures.simulation import until_it_waits
from tests.support.pictures.snapshots import Case, cases


@given(cases())
@example(Case(rolling_back("■■▲|", 3, 0, 1)))
@example(Case(resting("■■■|▲")))
def test_a_wait_always_waits_for_something_that_will_come(case: Case) -> None:
    decision = case.decide()
    if decision.verdict is not Verdict.SKIPPED:
        return
    starting = any(
        route.status is RouteStatus.PROVISIONING and route.revision_id == case.target
        for route in case.deployment.routes
    )
    stopping = case.budget.count_stopping and any(
        route.status is RouteStatus.TERMINATING for route in case.deployment.routes
    )
    timed = decision.recheck_at is not None and decision.recheck_at > NOW
    assert starting or stopping or timed or decision.clock_stopped, decision.reason


@given(cases())
def test_a_wait_is_never_due_at_once(case: Case) -> None:
    decision = cycle(case.deployment, NOW)
    if decision.verdict is Verdict.SKIPPED:
        assert decision.due_at is None or decision.due_at > NOW


@given(cases())
def test_while_the_world_stands_still_a_deployment_comes_to_rest(case: Case) -> None:
    until_it_waits(case.deployment, NOW)
