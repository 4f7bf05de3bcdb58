"""Which verbs are offered, drawn: each deployment beside what the shipped rules would take from a person now."""

from uuid import UUID

import pytest

from domain.commands.registry import PLANNED, button_of
from domain.model.deployment import Deployment, RolloutOutcome
from domain.steering.offered import Past, offered
from domain.steering.past import EndedRollout, KnownRevision
from domain.steering.steered import Asking
from tests.support.pictures.pictures import (
    DESTROYED,
    DESTROYING,
    NOW,
    PENDING,
    V1,
    V2,
    V3,
    blue_green,
    deploying,
    resting,
    rolling_back,
)
from tests.support.pictures.policies import canary

ASKING = Asking("asked", NOW, UUID(int=1))
FIRST = KnownRevision(V3, "v0", "a")
RAN = EndedRollout(FIRST, KnownRevision(V2, "v2", "b"), RolloutOutcome.COMPLETED, is_undo=False, size_before=3)
POLICY = blue_green()

TABLE = [
    (resting("", status=PENDING, current_revision_id=None), Past(POLICY), "scale"),
    (resting("■■■"), Past(POLICY), "restart scale"),
    (resting("■■■"), Past(POLICY, other=V3), "activate restart scale"),
    (resting("■■■"), Past(POLICY, other=V3, ended=[RAN]), "activate undo restart scale"),
    (resting("■■■"), Past(POLICY, other=V3, last=(V1, RolloutOutcome.ROLLED_BACK)), "activate retry restart scale"),
    (deploying("■■|◇"), Past(POLICY, other=V3, last=(V2, None)), "pause abort undo scale"),
    (deploying("■■|◇", paused_at=NOW), Past(POLICY, other=V3, last=(V2, None)), "resume abort undo scale"),
    (deploying("■■■|□□□", policy=POLICY), Past(POLICY, other=V3), "promote pause abort undo scale"),
    (deploying("■■|■", policy=canary(), rollout={"weight": 500}), Past(None), "promote pause abort undo scale"),
    (rolling_back("■■|~"), Past(POLICY, other=V3, last=(V2, None)), "pause retry scale"),
    (resting("~~", status=DESTROYING), Past(POLICY, other=V3, ended=[RAN]), ""),
    (resting("", status=DESTROYED), Past(POLICY, other=V3, ended=[RAN]), ""),
]


@pytest.mark.parametrize(("deployment", "past", "verbs"), TABLE)
def test_what_would_be_taken_is_offered_and_nothing_else(deployment: Deployment, past: Past, verbs: str) -> None:
    assert offered(deployment, past, ASKING) == tuple(verbs.split())


def test_a_promotion_that_is_asked_for_is_not_offered_again() -> None:
    asked = deploying("■■■|□□□", policy=POLICY, rollout={"promote_requested": True})
    assert "promote" not in offered(asked, Past(POLICY), ASKING)


def test_each_verb_that_is_offered_anywhere_has_a_button() -> None:
    verbs = {verb for deployment, past, _ in TABLE for verb in offered(deployment, past, ASKING)}
    assert verbs == set(PLANNED)
    assert {button_of(verb).fields for verb in verbs} == {(), ("revision",), ("desired_replicas",)}
    assert all(button_of(verb).label and button_of(verb).what.endswith(".") for verb in verbs)
