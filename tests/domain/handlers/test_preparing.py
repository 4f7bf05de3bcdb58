"""deploying/preparing: what is decided while hosts are prepared, and that no replica is touched."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.cycle.effects import after
from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment, Hold
from domain.model.preparation import Preparation, PreparationState
from domain.model.states import PREPARING, PROVISIONING, ROLLING_BACK, Verdict
from tests.support.pictures.pictures import NOW, deploying, drawn_changes

WAITING, RUNNING, DONE, FAILED = PreparationState
HELD = Hold("frozen by night", NOW + timedelta(hours=1))


def preparing(*states: PreparationState, picture: str = "■■■|", n: int = 3, **changed: Any) -> Deployment:
    hosts = tuple(Preparation(f"h{number}", state) for number, state in enumerate(states, 1))
    return deploying(picture, n, **{"status": PREPARING, "preparations": hosts, **changed})


@pytest.mark.parametrize(
    ("deployment", "verdict", "to", "reason"),
    [
        (preparing(WAITING, WAITING), Verdict.SKIPPED, PREPARING, "waiting: 0 of 2 hosts prepared"),
        (preparing(DONE, RUNNING), Verdict.SKIPPED, PREPARING, "waiting: 1 of 2 hosts prepared, h2 at it"),
        (preparing(DONE, DONE), Verdict.SUCCESS, PROVISIONING, "2 hosts prepared"),
        (preparing(), Verdict.SUCCESS, PROVISIONING, "no host is there to prepare"),
        (preparing(WAITING, n=0, picture="|"), Verdict.SUCCESS, PROVISIONING, "no replica is wanted"),
        (preparing(DONE, FAILED), Verdict.GIVE_UP, ROLLING_BACK, "host h2 could not be prepared: "),
        (preparing(DONE, DONE, paused_at=NOW), Verdict.SKIPPED, PREPARING, "waiting: it is paused; "),
        (preparing(DONE, FAILED, paused_at=NOW), Verdict.SKIPPED, PREPARING, "waiting: it is paused; "),
        (preparing(DONE, DONE, hold=HELD), Verdict.SKIPPED, PREPARING, "frozen by night"),
    ],
)
def test_what_is_decided(deployment: Deployment, verdict: Verdict, to: object, reason: str) -> None:
    decision = cycle(deployment, NOW)
    assert (decision.verdict, decision.to, bool(decision.changes)) == (verdict, to, False)
    assert decision.reason.startswith(reason)


def test_what_dies_meanwhile_is_replaced_by_the_old_revision_and_is_no_step() -> None:
    decision = cycle(preparing(RUNNING, picture="■■|"), NOW)
    assert (decision.verdict, decision.to, decision.is_step) == (Verdict.NEED_RETRY, PREPARING, False)
    assert drawn_changes(decision.deployment, decision.changes) == "create 1"
    assert decision.changes.rollout_specs[0].revision_id == decision.deployment.current_revision_id


def test_the_deadlines_of_the_rollout_are_stopped_meanwhile() -> None:
    waited = after(cycle(preparing(RUNNING), NOW), NOW)
    assert waited.rollout is not None
    assert waited.rollout.clock_stopped_at == NOW
    late = NOW + timedelta(hours=9)
    assert cycle(waited, late).verdict is Verdict.SKIPPED
    done = Preparation("h1", DONE)
    begins = after(cycle(replace(waited, preparations=(done,)), late), late)
    assert begins.rollout is not None
    assert begins.rollout.deadline == waited.rollout.deadline + (late - NOW)
    assert (begins.status, begins.preparations) == (PROVISIONING, ())
