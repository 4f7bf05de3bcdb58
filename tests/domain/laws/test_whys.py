"""What people are told of a wait is true: what to type is not refused, what follows does, and the numbers block it."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from itertools import count, islice
from typing import Any
from uuid import UUID

import pytest

from domain.cycle.evaluator import DeploymentStrategyEvaluator
from domain.handlers.dispatch import cycle
from domain.model.decision import Decision, Waits, WaitsFor
from domain.model.deployment import Deployment, Hold, StartFailures
from domain.model.policy import DeploymentPolicy, RolloutLimits
from domain.model.states import Verdict
from domain.planning.wait_explanation import Why, why
from domain.steering.activation import ActivationRequest, activate
from domain.steering.command_effect import Context, Effect
from domain.steering.verbs import abort, promote, resume
from domain.strategies.builtin import parse_policy
from domain.strategies.rolling_update import RollingUpdateStrategy
from tests.support.people.soak_report import size
from tests.support.pictures import pictures
from tests.support.pictures.pictures import NOW, PROVISIONING, READY, ROLLING_BACK, SCALING, V1, V2, deploying, resting
from tests.support.pictures.simulation import next_to_happen
from tests.support.pictures.specs import SPECS

MOMENTS = size("moments", 500)
"""In which something waits, of each strategy; several times as many in which nothing does are passed over."""
LIMITS = RolloutLimits(timeout_seconds=300)
FROZEN = Hold("held by the freeze xmas", NOW + timedelta(hours=3))
TOLD: dict[str, Callable[[Deployment, Context], Effect]] = {
    "resume": resume,
    "promote": lambda deployment, _: promote(deployment),
    "abort": abort,
    "activate": lambda deployment, asking: activate(deployment, ActivationRequest(V2, "v2", None, None), asking),
}
ASKING = Context("by ann", NOW, UUID(int=9))


def _moment(chance: random.Random, policy: DeploymentPolicy) -> Deployment:
    """Any replicas at any health, each for its own time, in any status, with what people and failures left behind."""
    drawn = ["".join(chance.choices("■■■■■◇△▲~□◌▫✗", k=chance.randint(0, 5))) for _ in "ab"]
    routes = tuple(
        replace(route, status_changed_at=NOW - timedelta(seconds=chance.choice([0, 2.6, 9, 25.4, 31, 3600])))
        for route in pictures.routes_of("|".join(drawn), V1, V2)
    )
    failed_at = NOW - timedelta(seconds=chance.random() * 9)
    failures = StartFailures(chance.choice([V1, V2]), chance.randint(1, 9), failed_at)
    status = chance.choice([PROVISIONING, PROVISIONING, PROVISIONING, ROLLING_BACK, SCALING, READY])
    known: dict[str, Any] = {"routes": routes, "start_failures": chance.choice([None, None, failures])}
    if status in (SCALING, READY):
        return resting("", chance.randint(0, 6), status, current_revision_id=V1, **known)
    return deploying(
        "",
        chance.randint(0, 6),
        status=status,
        policy=replace(policy, limits=LIMITS),
        paused_at=chance.choice([None] * 9 + [NOW]),
        hold=chance.choice([None] * 9 + [FROZEN]) if status == PROVISIONING else None,
        rollout={
            "failed_routes": chance.choice([0, 0, 0, 1]),
            "promote_requested": chance.choice([False, False, True]),
            "clock_stopped_at": chance.choice([None, None, NOW - timedelta(seconds=5)]),
            **_weight(chance, policy),
        },
        **known,
    )


def _weight(chance: random.Random, policy: DeploymentPolicy) -> dict[str, Any]:
    if policy.strategy != "canary":
        return {}
    return {
        "stage": chance.randint(0, 2),
        "weight": chance.choice([None, 0, 500, 500]),
        "weight_known_at": chance.choice([None, NOW, NOW - timedelta(seconds=10)]),
        "started_at": NOW - timedelta(days=chance.choice([0, 2])),
    }


@cache
def waiting(strategy: str) -> Sequence[tuple[Deployment, Why]]:
    """So many moments in which something waits, with what is told of them."""
    chance = random.Random(f"moments of {strategy}")
    policies = [parse_policy({"strategy": strategy, "spec": spec}) for spec in SPECS[strategy].told]
    moments = (_moment(chance, chance.choice(policies)) for _ in count())
    waits = (each for each in moments if cycle(each, NOW).verdict is Verdict.SKIPPED)
    return [(each, why(each, NOW)) for each in islice(waits, MOMENTS)]


@pytest.mark.parametrize("strategy", SPECS)
def test_what_a_person_is_told_to_type_is_not_refused(strategy: str) -> None:
    asked = [(deployment, told) for deployment, told in waiting(strategy) if told.waits_for is WaitsFor.PERSON]
    asked.append((pending := resting("", status=pictures.PENDING, current_revision_id=None), why(pending, NOW)))
    for deployment, told in asked:
        assert told.name is not None
        assert f"'{told.name}'" in told.sentence
        _, verb, name, *_ = told.name.split()
        steered = TOLD[verb](deployment, ASKING)
        assert (name, steered.already) == (deployment.name, False), told.sentence
    assert len(asked) > MOMENTS / 50


@pytest.mark.parametrize("strategy", SPECS)
def test_what_follows_by_itself_does_so_then_and_nothing_does_before(strategy: str) -> None:
    timed = 0
    for deployment, told in waiting(strategy):
        if told.waits_for in (WaitsFor.PERSON, WaitsFor.HOLD):  # no clock ends it but the hold's own
            assert told.left_seconds == (None if told.waits_for is WaitsFor.PERSON else 3 * 3600)
            continue
        follows = next_to_happen(deployment, NOW)
        left = None if follows is None else (follows[0] - NOW).total_seconds()
        assert told.left_seconds == left, told.sentence
        if follows is None:
            assert told.then == "no clock ends this wait"
            continue
        timed += 1
        assert _says(told.then, follows[1]), (told.sentence, follows[1].reason)
    assert timed > MOMENTS / 8


def _says(then: str, decision: Any) -> bool:
    """Whether the words are those of the decision that came: its kind first, and then its own sentence."""
    begins, _, said = then.partition(": ")
    kinds = {
        "the next step": Verdict.NEED_RETRY,
        "it completes": Verdict.SUCCESS,
        "scaling begins": Verdict.SUCCESS,
        "it waits for approval": Verdict.SKIPPED,
    }
    back = decision.verdict in (Verdict.EXPIRED, Verdict.GIVE_UP)
    is_kind = kinds[begins] is decision.verdict if begins in kinds else back
    return is_kind and said in decision.reason


@pytest.mark.parametrize("strategy", SPECS)
def test_the_inequality_is_true_and_has_the_numbers_that_are_there(strategy: str) -> None:
    seen = 0
    for deployment, told in waiting(strategy):
        waits = cycle(deployment, NOW).waits
        assert isinstance(waits, Waits), "every line that waits says what for"
        assert ", ".join(each.words for each in waits.blocked) == (told.blocked_by or "").replace(" and ", ", ")
        for each in waits.blocked:
            left, relation, right = re.split(r" ([<>]) ", each.words)
            value, limit = _number(left), _number(right)
            assert value < limit if relation == "<" else value > limit, told.sentence
            assert each.holds
            seen += 1
    assert seen > MOMENTS / 8


def _number(words: str) -> float:
    """1 min 5 s is 65, and 3 live + 1 stopping + 1 is 5."""
    sign, total = 1, 0.0
    for operator, number, unit in re.findall(r"(?:([+-]) ?)?([\d.]+)(?: (min|h|s)\b)?", words):
        sign = -1 if operator == "-" else 1
        total += sign * float(number) * {"min": 60, "h": 3600}.get(unit, 1)
    return total


class _Asks(RollingUpdateStrategy):
    """Somebody's own, which waits for a person, and has no promotion."""

    def evaluate_cycle(self, deployment: Deployment, spec: Any, now: datetime) -> Decision:  # noqa: ARG002
        return Decision.wait_for_person("the moon must be full")


def test_a_strategy_without_a_promotion_sends_nobody_to_a_verb_that_refuses_him() -> None:
    deployment = deploying("■■■|■")
    decision = DeploymentStrategyEvaluator({"rolling_update": _Asks()}).evaluate_one(deployment, NOW)
    assert decision.waits is not None
    assert decision.waits.verb == "abort"
    assert not TOLD[decision.waits.verb](deployment, ASKING).already
