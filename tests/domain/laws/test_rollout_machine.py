"""Whole rollouts as a state machine: bad luck, people, crashes; safe at every step, complete in the end."""

from dataclasses import asdict
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant

from domain.model.policy import DeploymentPolicy
from domain.model.states import DeploymentSubStep, Lifecycle, RouteStatus
from domain.steering import verbs as steering
from tests.support.people import people
from tests.support.people.soak_report import leave, size
from tests.support.pictures.pictures import DESTROYED, READY, V1, V2, V3, resting, routes_of
from tests.support.pictures.simulation import all_started, stopped
from tests.support.pictures.snapshots import policies
from tests.support.worlds.rollout_cycles import Cycles
from tests.support.worlds.rollout_people import COUNTS, People
from tests.support.worlds.rollout_replicas import Replicas
from tests.support.worlds.rollout_world import TOTALS

KIND_CYCLES = 300
QUICK = 300
ROLLOUTS_WANTED = size(
    "machine", {"nightly": 20_000, "soak": 3_000, "unit": 30}.get(settings.get_current_profile_name(), QUICK)
)


class Rollouts(Cycles, Replicas, People):
    """Everything that can happen to a deployment, and what must always hold."""

    @initialize(
        n=COUNTS,
        policy=policies(),
        desired=st.sampled_from([None, None, None, 0, 2, 5]),
        parked=st.sampled_from(["", "", "▫▫", "▫▫▫"]),
        of=st.sampled_from([V2, V3]),
    )
    def a_rollout_begins(self, n: int, policy: DeploymentPolicy, desired: int | None, parked: str, of: UUID) -> None:
        routes = routes_of(f"{'■' * n}|{parked}", V1, of)
        self.deployment, self.policy = resting("", n, READY, current_revision_id=V1, routes=routes), policy
        self.asked_for |= {of}
        self.command(lambda: people.activate_revision(self.deployment, V2, self.policy, self.now, desired=desired))
        self.asked_for.add(V2)

    @invariant()
    def the_row_makes_sense(self) -> None:
        if not hasattr(self, "deployment"):
            return
        deployment = self.deployment
        TOTALS.invariants_checked += 1
        deploying = deployment.status.lifecycle is Lifecycle.DEPLOYING
        assert deploying == (deployment.rollout is not None)
        assert deploying == (deployment.deploying_revision_id is not None)
        assert deploying == (deployment.status.sub_step is not None)
        assert deployment.current_revision_id is not None
        assert deployment.current_revision_id != deployment.deploying_revision_id
        assert deployment.paused_at is None or deploying
        assert (deployment.degraded_reason is None) == (deployment.retry_at is None)
        assert deployment.desired_replicas >= 0
        if deployment.rollout is not None:
            assert deployment.rollout.to_revision_id == deployment.deploying_revision_id
            assert deployment.rollout.from_revision_id == deployment.current_revision_id

    @invariant()
    def no_route_is_of_a_revision_that_nobody_asked_for(self) -> None:
        if hasattr(self, "deployment"):
            assert {route.revision_id for route in self.deployment.routes} <= self.asked_for
            assert len({route.id for route in self.deployment.routes}) == len(self.deployment.routes)
            assert self.deployment.status != DESTROYED or not self.deployment.routes
            for route in self.deployment.routes:
                assert route.parked_until is None or not route.is_serving

    def teardown(self) -> None:
        """Everything that starts becomes healthy, what is asked of a person is done, and nobody interferes."""
        if not hasattr(self, "deployment"):
            return
        for number in range(KIND_CYCLES):
            if self.rests():
                break
            self.somebody_helps()
            self.replicas_changed(stopped(all_started(self.deployment, self.now)))
            if self.due_at is not None:
                self.now = max(self.now, self.due_at)
                self.look()
            TOTALS.most_cycles_to_the_end = max(TOTALS.most_cycles_to_the_end, number)
        else:
            raise AssertionError(f"no end after {KIND_CYCLES} cycles in a kind world: {self.deployment}")
        self.it_is_complete()

    def rests(self) -> bool:
        if self.deployment.status == DESTROYED:
            return True
        on_the_way = {RouteStatus.PROVISIONING, RouteStatus.TERMINATING} & {
            route.status for route in self.deployment.routes
        }
        return self.deployment.status == READY and self.due_at is None and not on_the_way

    def somebody_helps(self) -> None:
        if self.deployment.paused_at is not None:
            self.command(lambda: steering.resume(self.deployment, people.asking(self.deployment, self.now)))
        elif self.waits_for_person and self.deployment.status.sub_step is DeploymentSubStep.PROVISIONING:
            self.command(lambda: steering.promote(self.deployment))

    def it_is_complete(self) -> None:
        deployment = self.deployment
        if deployment.status == DESTROYED:
            assert not deployment.routes
            return
        assert deployment.degraded_reason is None
        assert [(route.revision_id, route.is_serving) for route in deployment.routes] == [
            (deployment.current_revision_id, True)
        ] * deployment.desired_replicas


TestRollouts = Rollouts.TestCase
TestRollouts.settings = settings(
    max_examples=ROLLOUTS_WANTED * 4 // 5, stateful_step_count=30, derandomize=ROLLOUTS_WANTED <= QUICK, database=None
)


def test_the_machine_has_seen_enough_rollouts_and_everything_that_can_happen_to_them() -> None:
    figures = asdict(TOTALS)
    faults = TOTALS.replica_faults + TOTALS.decisions_lost + TOTALS.stale_decisions_refused
    leave("machine", faults=faults, checks=TOTALS.invariants_checked + TOTALS.steps_replayed, **figures)
    assert TOTALS.rollouts >= ROLLOUTS_WANTED
    assert all(figures.values()) or ROLLOUTS_WANTED < QUICK, TOTALS
