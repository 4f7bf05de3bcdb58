"""`rollway undo` in each state of a deployment: what it does, and what the next cycle does to the traffic."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from domain.handlers.dispatch import cycle
from domain.model.decision import Decision
from domain.model.deployment import Deployment
from domain.model.policy import DeploymentPolicy
from domain.model.states import RolloutOutcome
from domain.steering.rollout_history import EndedRollout, KnownRevision, way_back
from domain.steering.verbs import OnlyFailedError, undo
from domain.text.errors import RollwayError
from tests.support.people.people import asking, request
from tests.support.pictures.pictures import (
    DESTROYING,
    NOW,
    PENDING,
    READY,
    RECREATE,
    ROLLING_BACK,
    V1,
    V2,
    V3,
    blue_green,
    deploying,
    happens,
    resting,
    rolling_back,
    rolling_update,
)
from tests.support.pictures.policies import canary

V0 = UUID("00000000-0000-0000-0000-0000000000a0")
REVISIONS = {
    "v0": KnownRevision(V0, "v0", "a"),
    "v1": KnownRevision(V1, "v1", "b"),
    "v1.r1": KnownRevision(V2, "v1.r1", "b"),
    "v2": KnownRevision(V2, "v2", "c"),
    "v3": KnownRevision(V3, "v3", "d"),
}
ROLLING = rolling_update()
HURRIED = rolling_update(1, 0, min_ready_seconds=60, undo_max_surge="100%")
MANUAL = blue_green(auto_promote=False, scale_down_delay_seconds=60)
DELAYED = blue_green(auto_promote=True, promote_delay_seconds=600, scale_down_delay_seconds=60)
COMPLETED, ROLLED_BACK = RolloutOutcome.COMPLETED, RolloutOutcome.ROLLED_BACK
ARROWS = {"→": (COMPLETED, False), "✗": (ROLLED_BACK, False), "↩": (COMPLETED, True), "⇄": (ROLLED_BACK, True)}
"""Completed and rolled back, of rollouts and of undos: "v1→v2 v2✗v3" is one to v2, then one to v3 that came back."""


@dataclass(frozen=True)
class Row:
    """`past`: the rollouts that ended, as ARROWS draw them. `to`: the revision that the person names.

    `ago`: how many seconds before the last of them ended.
    """

    state: str
    deployment: Deployment
    past: str
    happens: str
    policy: DeploymentPolicy | None = ROLLING
    to: str | None = None
    ago: int = 3600


def ended(past: str, ago: int = 3600) -> list[EndedRollout]:
    rollouts = []
    for drawn in past.split():
        arrow = next(known for known in ARROWS if known in drawn)
        left, right = (REVISIONS[name] for name in drawn.split(arrow))
        outcome, is_undo = ARROWS[arrow]
        rollouts.append(EndedRollout(left, right, outcome, NOW - timedelta(seconds=ago), is_undo, 3))
    return rollouts


def at_rest(drawn: str = "■■■", **changed: Any) -> Deployment:
    return resting(drawn, **{"status": READY, **changed})


def undoing(drawn: str, policy: DeploymentPolicy = ROLLING, **changed: Any) -> Deployment:
    """An undo from v1, which is bad here, to v2."""
    return deploying(drawn, policy=policy, rollout={"is_undo": True, "promote_requested": True}, **changed)


GREEN = deploying("■■■|□□□", policy=MANUAL, rollout={"clock_stopped_at": NOW})
WEIGHED_POLICY = canary(steps=["5%", "50%"], undo_max_surge="100%", min_ready_seconds=60)
WEIGHED = deploying("■■■|■", policy=WEIGHED_POLICY, rollout={"stage": 1, "weight": 500, "weight_known_at": NOW})
PAUSED: dict[str, Any] = {"paused_at": NOW, "rollout": {"clock_stopped_at": NOW}}

ROWS = [
    # rolling update, in a rollout from v1 to v2
    Row("begun", deploying("■■■|"), "", "turns back: completed"),
    Row("one new one starts", deploying("■■|◇"), "", "turns back: create 1, drain ◇"),
    Row("half way", deploying("■|■■"), "", "turns back: create 1, drain ■"),
    Row("all are new", deploying("|■■■"), "", "turns back: create 1, drain ■"),
    Row("new ones fail", deploying("■■|▲"), "", "turns back: create 1, drain ▲"),
    Row("paused", deploying("■■|◇", **PAUSED), "", "turns back: create 1, drain ◇"),
    Row("rolling back", rolling_back("■■|■"), "", "nothing to do"),
    Row("rolling back, paused", rolling_back("■■|■", **PAUSED), "", "turns back: create 1, drain ■"),
    # rolling update, at rest with v2
    Row("completed", at_rest(), "v1→v2", "to v1: create 1, drain ■"),
    Row("completed, undone with a surge of its own", at_rest(), "v1→v2", "to v1: create 3", HURRIED),
    Row("completed, replicas sick", at_rest("▲▲▲"), "v1→v2", "to v1: create 1, drain ▲"),
    Row("completed, and scaling", resting("■◇◇"), "v1→v2", "to v1: create 1, drain ◇"),
    Row("degraded", at_rest("▲▲", degraded_reason="starts fail", retry_at=NOW), "v1→v2", "to v1: create 2"),
    Row("came back by itself, or after an abort", at_rest(), "v1→v2 v2✗v3", "refused: v3 is undone already, to v1"),
    Row("has just come back by itself", at_rest(), "v1→v2 v2✗v3", "nothing to do", ago=60),
    Row("came back a while ago", at_rest(), "v1→v2 v2✗v3", "refused: v3 is undone already, to v1", ago=61),
    Row("came back, nothing before", at_rest(), "v2✗v3", "refused: v3 is undone already"),
    Row("came back, then a rollout", at_rest(), "v0→v1 v1✗v3 v1→v2", "to v1: create 1, drain ■"),
    Row("came back, then retried", at_rest(), "v1✗v2 v1→v2", "to v1: create 1, drain ■"),
    Row("what ran before came back later", at_rest(), "v0→v1 v1→v2 v2✗v1 v2→v3 v3→v2", "to v3: create 1, drain ■"),
    Row("after an undo", at_rest(), "v0→v2 v2→v3 v3↩v2", "refused: v3 is undone already, to v0"),
    Row("just after an undo", at_rest(), "v0→v2 v2→v3 v3↩v2", "refused: v3 is undone already, to v0", ago=1),
    Row("after an undo and a rollout", at_rest(), "v0→v1 v1→v3 v3↩v1 v1→v2", "to v1: create 1, drain ■"),
    Row("after two undos and a rollout", at_rest(), "v0→v1 v1→v3 v3↩v1 v1↩v0 v0→v2", "to v0: create 1, drain ■"),
    Row("after an undo that did not work out", at_rest(), "v0→v1 v1→v2 v2⇄v1", "to v0: create 1, drain ■"),
    Row("that did not work out, nothing before", at_rest(), "v1→v2 v2⇄v1", "refused: v1 was rolled back itself"),
    Row("after a restart", at_rest(), "v0→v1 v1→v1.r1", "to v0: create 1, drain ■"),
    Row("after a restart, nothing before", at_rest(), "v1→v1.r1", "refused: v1 ran the same before"),
    Row("first revision", at_rest(), "", "refused: nothing before"),
    Row("first revision, starting", resting("◇◇◇"), "", "refused: nothing before"),
    Row("pending", resting("", status=PENDING, current_revision_id=None), "", "refused: nothing before"),
    Row("left without a rollout", at_rest(), "v0→v1", "refused: nothing before"),
    Row("left without one, then a rollout", at_rest(), "v0→v1 v1→v3 v1→v2", "to v1: create 1, drain ■"),
    Row("policy removed since", at_rest(), "v1→v2", "moved to v1: completed", policy=None),
    Row("being destroyed", at_rest("■~~", status=DESTROYING), "v1→v2", "refused: destroying"),
    # an undo under way, from v1 to v2
    Row("undo under way", undoing("■■|◇"), "", "nothing to do"),
    Row("undo under way, paused", undoing("■■|■", paused_at=NOW), "", "continues: create 1, drain ■"),
    Row("undo rolling back", undoing("■■|■", status=ROLLING_BACK), "", "refused: the undo did not work out"),
    # blue-green that waits for a person
    Row("green starts", deploying("■■■|◌◌◌", policy=MANUAL), "", "turns back: drain ◇◇◇"),
    Row("green waits for promote", GREEN, "", "turns back: drain □□□"),
    Row("paused with green", replace(GREEN, paused_at=NOW), "", "turns back: drain □□□"),
    Row("promoted, blue parked", at_rest("▫▫▫|■■■"), "v1→v2", "to v1: completed: promote □□□, park ■■■", MANUAL),
    Row("promoted, one of blue died", at_rest("▫▫|■■■"), "v1→v2", "to v1: create 1", MANUAL),
    Row("promoted, blue gone", at_rest(), "v1→v2", "to v1: create 3", MANUAL),
    Row("blue comes up", undoing("■■■|□□□", MANUAL), "", "nothing to do"),
    Row("undone, and green parked", at_rest("▫▫▫|■■■"), "v2→v1 v1↩v2", "refused: v1 is undone already", MANUAL),
    Row("after a restart, parked", at_rest("▫▫▫|■■■"), "v1→v1.r1", "to v1: completed: promote □□□, park ■■■", MANUAL),
    Row("delay before promotion", at_rest("▫▫▫|■■■"), "v1→v2", "to v1: completed: promote □□□, park ■■■", DELAYED),
    Row("parked, rolls now", at_rest("▫▫▫|■■■"), "v1→v2", "to v1: promote □□□"),
    # recreate
    Row("recreate, old ones stop", deploying("~~~|", policy=RECREATE), "", "turns back: wait"),
    Row("recreate, completed", at_rest(), "v1→v2", "to v1: drain ■■■", RECREATE),
    Row("recreate, came back", at_rest(), "v1→v2 v2✗v3", "refused: v3 is undone already, to v1", RECREATE),
    # with a name
    Row("named, half way", deploying("■|■■"), "", "turns back: create 1, drain ■", to="v1"),
    Row("named, elsewhere half way", deploying("■|■■"), "", "to v3: create 1, drain ■", to="v3"),
    Row("named, rolling back", rolling_back("■|■■"), "", "to v3: create 1, drain ■", to="v3"),
    Row("named, where green waits", GREEN, "", "to v2: completed: promote □□□, park ■■■", MANUAL, to="v2"),
    Row("named, where a canary waits", WEIGHED, "", "to v2: create 2, drain ■", WEIGHED_POLICY, to="v2"),
    Row("named, undo under way", undoing("■■|◇"), "", "continues: wait", to="v2"),
    Row("named, rolled back before", at_rest(), "v2✗v3", "to v3: create 1, drain ■", to="v3"),
    Row("named, what runs", at_rest(), "v1→v2", "nothing to do", to="v2"),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.state)
def test_an_undo_does_what_a_person_in_a_panic_expects(row: Row) -> None:
    assert undone(row) == row.happens


def test_an_undo_moves_all_traffic_once_what_it_goes_back_to_is_healthy() -> None:
    rollout = undo(at_rest(), request(at_rest(), V1, HURRIED), asking(at_rest(), NOW)).deployment.rollout
    assert rollout is not None
    for picture, expected in (("■■■|■■◇", "wait"), ("■■■|■■■", "drain ■■■")):
        undone = undoing(picture, rollout.policy)
        next_one = cycle(undone, NOW)
        assert (
            happens(undone, Decision(next_one.raw_verdict, next_one.reason, next_one.changes, waits=next_one.waits))
            == expected
        )


def test_an_undo_to_what_has_only_ever_failed_is_refused_whatever_is_under_way() -> None:
    for deployment in (at_rest(), deploying("■■|◇")):
        back = replace(request(deployment, V3, ROLLING), revision_name="v3", only_failed="no port is free")
        with pytest.raises(OnlyFailedError) as refused:
            undo(deployment, back, asking(deployment, NOW))
        assert refused.value.message == (
            "v3 of web has only ever failed: no port is free; 'rollway undo web --to v3 --anyway' goes there anyway"
        )
        assert refused.value.detail == {"deployment": "web", "revision": "v3"}


def test_an_undo_under_way_that_is_paused_goes_on_with_a_second_undo() -> None:
    steered = undo(undoing("■■|■", paused_at=NOW), None, asking(at_rest(), NOW))
    assert (steered.sentence, steered.deployment.paused_at, steered.already) == (
        "going back, no longer paused",
        None,
        False,
    )
    assert undo(undoing("■■|■"), None, asking(at_rest(), NOW)).already


def undone(row: Row) -> str:
    deployment, who = row.deployment, asking(row.deployment, NOW)
    try:
        if row.to is None and deployment.rollout is None:
            back = way_back(deployment, ended(row.past, row.ago), NOW)
            named: UUID | None = back.revision.id
        else:
            named = REVISIONS[row.to].id if row.to else None
        steered = undo(deployment, request(deployment, named, row.policy) if named else None, who)
    except RollwayError as refusal:
        return f"refused: {in_short(refusal)}"
    if steered.already:
        return "nothing to do"
    after = steered.deployment
    next_one = cycle(after, NOW)
    found = Decision(next_one.raw_verdict, next_one.reason, next_one.changes, waits=next_one.waits)
    return f"{where(deployment, after)}: {happens(after, found)}"


def in_short(refusal: RollwayError) -> str:
    match refusal.code:
        case "already_undone":
            further = refusal.detail["further"]
            return f"{refusal.detail['undone']} is undone already" + (f", to {further}" if further else "")
        case "no_previous_revision" if "v1, which web ran before, runs the same" in refusal.message:
            return "v1 ran the same before"
        case "no_previous_revision":
            return "v1 was rolled back itself" if "'rollway undo web --to v1'" in refusal.message else "nothing before"
        case _:
            return "destroying" if "destroying" in refusal.message else "the undo did not work out"


def where(before: Deployment, after: Deployment) -> str:
    names = {known.id: known.name for known in REVISIONS.values()} | {V2: "v2"}
    if after.rollout is None:
        assert after.current_revision_id is not None
        return f"moved to {names[after.current_revision_id]}"
    if after.status == ROLLING_BACK:
        return "turns back"
    if before.rollout is not None and before.rollout.id == after.rollout.id:
        return "continues"
    assert after.rollout.is_undo
    return f"to {names[after.rollout.to_revision_id]}"
