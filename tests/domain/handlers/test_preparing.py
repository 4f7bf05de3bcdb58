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


@pytest.mark.parametrize(
    ("hosts", "reason"),
    [
        ([("h1", RUNNING, "pulling 40 %")], "waiting: 0 of 1 host prepared, h1: pulling 40 %"),
        (
            [("h1", RUNNING, ""), ("h2", WAITING, "x"), ("h3", RUNNING, "unpacking"), ("h4", DONE, "y")],
            "waiting: 1 of 4 hosts prepared, h1 at it, h3: unpacking",
        ),
        (
            [("h1", DONE, ""), ("h2", FAILED, "disk full"), ("h3", FAILED, "x")],
            "host h2 could not be prepared: disk full",
        ),
        ([("h1", DONE, "")], "1 host prepared"),
    ],
)
def test_it_says_what_each_host_is_at(hosts: list[tuple[str, PreparationState, str]], reason: str) -> None:
    deployment = preparing(preparations=tuple(Preparation(*host) for host in hosts))
    assert cycle(deployment, NOW).reason == reason


@pytest.mark.parametrize(("changed", "seconds"), [({}, 5), ({"paused_at": NOW}, None), ({"hold": HELD}, 3600)])
def test_what_a_host_says_is_read_again_soon_and_not_while_it_is_paused_or_held(
    changed: dict[str, Any], seconds: float | None
) -> None:
    decision = cycle(preparing(RUNNING, **changed), NOW)
    assert decision.due_at == (None if seconds is None else NOW + timedelta(seconds=seconds))
    assert decision.clock_stopped
    assert decision.waits is not None
    assert decision.waits.kind == ("person" if "paused_at" in changed else "hold" if "hold" in changed else "host")


@pytest.mark.parametrize("states", [(DONE, FAILED), (DONE, DONE), ()])
@pytest.mark.parametrize("stands", [{"paused_at": NOW}, {"hold": HELD}])
def test_nothing_begins_and_nothing_goes_back_while_it_is_paused_or_held(
    states: tuple[PreparationState, ...], stands: dict[str, Any]
) -> None:
    decision = cycle(preparing(*states, **stands), NOW)
    assert (decision.verdict, decision.to) == (Verdict.SKIPPED, PREPARING)
