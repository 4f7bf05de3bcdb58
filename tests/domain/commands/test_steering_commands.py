"""Commands that steer: each says its options, and what it knows of the deployment, to its rule."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from domain.commands.steering_command import SteeringCommand
from domain.model.deployment import Deployment
from domain.model.states import RolloutOutcome
from domain.steering.activation import ActivationRequest
from domain.steering.command_effect import Context, Effect
from tests.support.people.people import asking, request
from tests.support.pictures.pictures import NOW, V3, deploying, resting, rolling_update
from tests.support.pictures.policies import canary
from tests.support.workers.payloads import ask

STEPS = canary(steps=["5%", "50%"])
TIRED = resting("■■■", degraded_reason="no port is free")
SHIFTED = deploying("■|■■", policy=STEPS, rollout={"weight": 5000})


@dataclass(frozen=True, slots=True)
class Asked:
    """A deployment that somebody steers; `last`: the outcome of its last rollout, to v3."""

    deployment: Deployment
    last: RolloutOutcome | None = None

    @property
    def asking(self) -> Context:
        return asking(self.deployment, NOW)

    def asked_for(self) -> ActivationRequest:
        return replace(request(self.deployment, V3, rolling_update()), revision_name="v3")

    def changed(self) -> ActivationRequest:
        return replace(self.asked_for(), revision_name="v3-changed")

    def same_again(self) -> ActivationRequest:
        return replace(self.asked_for(), revision_name="v1.r2")

    def way_back(self) -> ActivationRequest | None:
        return replace(self.asked_for(), revision_name="v0") if self.deployment.rollout is None else None

    def start_seconds(self) -> float | None:
        return 77.0

    def last_rollout(self) -> tuple[ActivationRequest | None, RolloutOutcome | None]:
        return (self.asked_for(), self.last) if self.last else (None, None)


def steered(command: str, case: Asked, **given: Any) -> Effect:
    asked = ask(command, **given)
    assert isinstance(asked, SteeringCommand)
    return asked.steer(case)


@pytest.mark.parametrize(
    ("command", "case", "given", "sentence"),
    [
        ("activate_revision", Asked(resting("■■■")), {}, "started the rollout to v3"),
        ("restart", Asked(resting("■■■")), {}, "started the rollout to v1.r2"),
        ("rolling_update", Asked(resting("■■■")), {}, "started the rollout to v3-changed"),
        ("pause", Asked(SHIFTED), {}, "paused"),
        ("resume", Asked(replace(SHIFTED, paused_at=NOW)), {}, "resumed"),
        ("promote", Asked(SHIFTED), {}, "continues to the next weight"),
        ("promote", Asked(SHIFTED), {"full": True, "reason": "it is night"}, "past all weights"),
        ("abort", Asked(SHIFTED), {}, "aborted, going back; the canary keeps 50 % of the requests until 2 more are up"),
        ("abort", Asked(SHIFTED), {"now": True}, "aborted, going back; 1 old replica answers what 3 should"),
        ("undo", Asked(SHIFTED), {}, "undone, going back; the canary keeps 50 % of the requests until 2 more are up"),
        ("undo", Asked(SHIFTED), {"now": True}, "undone, going back; 1 old replica answers what 3 should"),
        ("undo", Asked(resting("■■■")), {}, "started the rollout back to v0"),
        ("scale", Asked(SHIFTED), {"desired_replicas": 5}, "from 3 to 5 replicas"),
        ("destroy", Asked(SHIFTED), {}, "asked for"),
        ("destroy", Asked(SHIFTED), {"force": True}, "asked for by force, 3 replicas taken as stopped"),
        ("retry", Asked(resting("■■■"), RolloutOutcome.ROLLED_BACK), {}, "started the rollout to v3"),
        ("retry", Asked(TIRED, RolloutOutcome.ROLLED_BACK), {}, "started the rollout to v3"),
        (
            "retry",
            Asked(TIRED, RolloutOutcome.ROLLED_BACK),
            {"now": True},
            "tried again now, 0 failed starts forgotten",
        ),
    ],
)
def test_a_command_with_its_options_does_what_its_rule_says(
    command: str, case: Asked, given: dict[str, Any], sentence: str
) -> None:
    assert steered(command, case, **given).sentence.startswith(sentence)


@pytest.mark.parametrize("command", ["abort", "undo"])
@pytest.mark.parametrize("now", [False, True])
def test_who_leaves_a_canary_is_told_how_long_recent_starts_took(command: str, *, now: bool) -> None:
    assert (
        "2 more are up, 1 at a time, about 154 s as starts went of late"
        in steered(command, Asked(SHIFTED), now=now).sentence
    )


@pytest.mark.parametrize(("with_rollout", "of_revision"), [(False, None), (True, 5)])
def test_a_size_is_that_of_the_deployment_or_comes_with_the_rollout(
    *, with_rollout: bool, of_revision: int | None
) -> None:
    scaled = steered("scale", Asked(SHIFTED), desired_replicas=5, with_rollout=with_rollout).deployment
    assert scaled.rollout is not None
    assert (scaled.desired_replicas, scaled.rollout.desired_with_revision) == (5, of_revision)
