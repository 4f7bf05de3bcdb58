"""Whole rollouts through bad times and good ones: safe at every step, and in the end complete."""

import random
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment
from domain.model.states import Lifecycle, RouteStatus
from domain.planning.simulator import with_status
from domain.steering.verbs import scale
from tests.support.pictures.pictures import DESTROYED, DESTROYING, NOW, READY
from tests.support.pictures.safety import check_safety
from tests.support.pictures.simulation import all_started, applied, stopped
from tests.support.pictures.snapshots import Case, cases

BAD_TIMES = 25
ENOUGH = 400


class Run:
    """A deployment, its clock, and what must never happen."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.now = NOW
        self.due_at: datetime | None = NOW
        self.waits_for_person = False

    def look(self) -> None:
        decision = cycle(self.deployment, self.now)
        check_safety(decision, self.now)
        self.deployment = applied(decision, self.now, stopping=True)
        self.due_at = decision.due_at
        self.waits_for_person = decision.clock_stopped

    def bad_time(self, chance: random.Random) -> None:
        """Time passes, replicas come up, fail, sicken and recover; sometimes a user has a wish."""
        self.now += timedelta(seconds=chance.choice([0, 1, 5, 31, 200]))
        if chance.random() < 0.5:
            self.deployment = stopped(self.deployment)
        for route in self.deployment.routes:
            match route.status:
                case RouteStatus.PROVISIONING:
                    becomes = chance.choice([None, None, RouteStatus.HEALTHY, RouteStatus.HEALTHY, RouteStatus.FAILED])
                case RouteStatus.HEALTHY:
                    becomes = chance.choice([None] * 12 + [RouteStatus.UNHEALTHY, RouteStatus.FAILED])
                case RouteStatus.UNHEALTHY | RouteStatus.DEGRADED:
                    becomes = chance.choice([None, None, RouteStatus.HEALTHY, RouteStatus.DEGRADED])
                case _:
                    becomes = None
            if becomes is not None:
                self.deployment = with_status(self.deployment, [route.id], becomes, self.now)
        self.deployment = self.wish(chance)

    def wish(self, chance: random.Random) -> Deployment:
        deployment = self.deployment
        match chance.choice(["none"] * 30 + ["scale", "scale", "pause", "resume", "resume", "destroy"]):
            case "scale":
                scalable = deployment.status.lifecycle not in (Lifecycle.DESTROYING, Lifecycle.DESTROYED)
                return scale(deployment, chance.randint(0, 12)).deployment if scalable else deployment
            case "pause" if deployment.status.lifecycle is Lifecycle.DEPLOYING:
                return replace(deployment, paused_at=self.now)
            case "resume":
                return replace(deployment, paused_at=None)
            case "destroy" if chance.random() < 0.2:
                return replace(deployment, status=DESTROYING, rollout=None, deploying_revision_id=None, paused_at=None)
        return deployment

    def good_times(self) -> None:
        """Everything that starts becomes healthy, what stops is gone; what is sick stays sick; no look is in vain."""
        self.deployment = replace(self.deployment, paused_at=None)
        self.due_at = self.now
        for _ in range(ENOUGH):
            on_the_way = any(
                route.status in (RouteStatus.PROVISIONING, RouteStatus.TERMINATING) for route in self.deployment.routes
            )
            if self.waits_for_person and self.deployment.rollout is not None:
                promoted = replace(self.deployment.rollout, promote_requested=True)
                self.deployment, self.due_at = replace(self.deployment, rollout=promoted), self.now
            if self.deployment.status == DESTROYED or (self.due_at is None and not on_the_way):
                return
            self.now = max(self.now, self.now + timedelta(seconds=1) if on_the_way else self.due_at or self.now)
            self.deployment = all_started(stopped(self.deployment), self.now)
            self.look()
        raise AssertionError(f"no end after {ENOUGH} cycles: {self.deployment}")


@given(
    cases(st.sampled_from([status for status in RouteStatus if status.is_active])), st.randoms(use_true_random=False)
)
def test_from_any_start_through_bad_times_every_rollout_ends_complete(case: Case, chance: random.Random) -> None:
    run = Run(case.deployment)
    for _ in range(BAD_TIMES):
        run.bad_time(chance)
        if run.deployment.status == DESTROYED:
            break
        run.look()
    run.good_times()
    deployment = run.deployment
    if deployment.status == DESTROYED:
        assert deployment.routes == ()
        return
    assert deployment.status == READY
    assert deployment.deploying_revision_id is None
    assert deployment.degraded_reason is None
    kinds = Counter((route.revision_id, route.status, route.is_serving) for route in deployment.routes)
    complete = {(deployment.current_revision_id, RouteStatus.HEALTHY, True): deployment.desired_replicas}
    assert kinds == {key: count for key, count in complete.items() if count}
