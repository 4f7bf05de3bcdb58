"""Plans against what then happens: rollouts of any policy and size in which nothing fails, in any order of starts."""

import random
from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment
from domain.model.policy import DeploymentPolicy
from domain.model.states import RouteStatus
from domain.planning.plan_input import Subject
from domain.planning.replica_timings import Span, Timings
from domain.planning.rollout_plan import plan
from domain.planning.run import Stand
from domain.planning.simulator import LearnedFates, with_status, without
from tests.support.pictures.pictures import NOW, READY, deploying
from tests.support.pictures.simulation import applied
from tests.support.pictures.snapshots import REPLICAS, policies


@dataclass
class Happening:
    """A rollout in which replicas come up and stop one by one, in an order that chance gives."""

    deployment: Deployment
    chance: random.Random
    moves: list[tuple[int, int, int, int]] = field(default_factory=list)
    stands: list[Stand] = field(default_factory=list)

    def to_the_end(self) -> None:
        now = NOW
        for _ in range(2000):
            decision = cycle(self.deployment, now)
            self.deployment = applied(decision, now, stopping=True)
            self.stands.append(Stand.of(self.deployment.routes))
            if decision.changes_anything:
                changes = decision.changes
                drained, promoted = len(changes.drain_route_ids), len(changes.promote_route_ids)
                self.moves.append((changes.created, drained, promoted, len(changes.park_route_ids)))
            if decision.to == READY:
                return
            if decision.clock_stopped and self.deployment.rollout is not None:
                asked = replace(self.deployment.rollout, promote_requested=True)
                self.deployment = replace(self.deployment, rollout=asked)
            elif decision.due_at is not None and decision.due_at <= now:
                continue
            elif not self.something_ends(now):
                assert decision.due_at is not None, decision.reason
                now = decision.due_at
        raise AssertionError("no end")

    def something_ends(self, now: datetime) -> bool:
        """One start or one stop; False when none is under way."""
        ending = [r for r in self.deployment.routes if r.status in (RouteStatus.PROVISIONING, RouteStatus.TERMINATING)]
        if not ending:
            return False
        route = self.chance.choice(ending)
        if route.status is RouteStatus.TERMINATING:
            self.deployment = without(self.deployment, [route.id])
        else:
            self.deployment = with_status(self.deployment, [route.id], RouteStatus.HEALTHY, now)
        return True


def beginning(policy: DeploymentPolicy, n: int) -> Deployment:
    return deploying("■" * n + "|", n, policy=policy)


@given(policies(), REPLICAS, st.randoms(use_true_random=False))
def test_what_happens_is_what_the_plan_said_and_stays_within_what_it_promised(
    policy: DeploymentPolicy, n: int, chance: random.Random
) -> None:
    deployment = beginning(policy, n)
    foreseen = plan(Subject(deployment), NOW, Timings(), random.Random(1).random)
    happening = Happening(deployment, chance)
    happening.to_the_end()
    assert foreseen.ends_ready
    if foreseen.is_certain:
        assert happening.moves == [wave.moves for wave in foreseen.waves]
    assert max(stand.live for stand in happening.stands) <= foreseen.ceiling
    assert min(stand.serving for stand in happening.stands) >= min(foreseen.floor, n)


@pytest.mark.parametrize(
    ("level", "spread"),
    [
        pytest.param(0.0, 0.3, id="a steady machine"),
        pytest.param(0.1, 0.1, id="a machine that becomes busier and less busy"),
        pytest.param(0.2, 0.05, id="one that does so fast"),
    ],
)
def test_nine_of_ten_rollouts_take_no_longer_than_the_ones_before_them_teach(level: float, spread: float) -> None:
    """Three starts one after the other, on a machine whose pace wanders from rollout to rollout."""
    chance, pace, measured = random.Random(3), 1.0, list[float]()
    within = 0
    for number in range(300):
        pace *= chance.lognormvariate(0, level)
        took = [pace * chance.lognormvariate(0, spread) for _ in range(3)]
        if number >= 100:
            fates = [LearnedFates(timings=Timings(tuple(measured[-300:])), draw=chance.random) for _ in range(200)]
            sums = [sum(each.of_replica().start_seconds for _ in range(3)) for each in fates]
            within += sum(took) <= Span.of(sums).p90
        measured += took
    assert 0.85 <= within / 200 <= 0.97, "give or take what chance does to 200"


def test_the_longer_a_rollout_the_fewer_of_its_runs_are_drawn() -> None:
    def draws(n: int) -> int:
        drawn = 0

        def draw() -> float:
            nonlocal drawn
            drawn += 1
            return 0.5

        plan(Subject(deploying("■" * n + "|", n)), NOW, Timings((1.0,), (1.0,)), draw)
        return drawn

    assert draws(60) < 5 * draws(3), "a run draws 19 times as often, and there are 9 of them instead of 100"
