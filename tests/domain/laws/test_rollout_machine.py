"""Whole rollouts as a state machine: bad luck, people, crashes in any order; safe at every step, complete in the end.

The world is a version and a snapshot. A cycle decides from a snapshot and is applied only while the version is still
the snapshot's, as under the lock of the real one; a crash is a decision that nobody applies.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from domain import steering
from domain.errors import RollwayError
from domain.model import Deployment, DeploymentSubStep, Lifecycle, RolloutOutcome, Route, RouteStatus, Verdict
from domain.policy import DeploymentPolicy
from domain.recording import decision_json, inputs_json
from domain.replay import replay_step
from domain.steered import Steered
from domain.transitions import ClassifiedDecision, RevisionMove
from tests.support import people
from tests.support.pictures import DESTROYED, NOW, READY, V1, V2, V3, resting, routes_of
from tests.support.safety import check_safety
from tests.support.simulation import all_started, applied, cycle, handler_of, stopped, with_status
from tests.support.snapshots import policies
from tests.support.soak_report import leave, size

KIND_CYCLES = 300
REVISIONS = st.sampled_from([V1, V2, V2, V3])
COUNTS = st.sampled_from([3, 5, 8, 4, 3, 2, 1, 0])
SECONDS = st.sampled_from([0, 1, 5, 31, 200, 2000])
WHICH = st.integers(0, 15)
QUICK = 300
ROLLOUTS_WANTED = size(
    "machine", {"nightly": 20_000, "soak": 3_000, "unit": 30}.get(settings.get_current_profile_name(), QUICK)
)


@dataclass
class Totals:
    """What all runs of the machine came to, for the summary at the end of the test run."""

    runs: int = 0
    rollouts: int = 0
    completed: int = 0
    rolled_back: int = 0
    superseded: int = 0
    destroyed: int = 0
    parked: int = 0
    brought_back: int = 0
    cycles: int = 0
    steps_replayed: int = 0
    stale_decisions_refused: int = 0
    decisions_lost: int = 0
    replica_faults: int = 0
    commands: int = 0
    commands_refused: int = 0
    invariants_checked: int = 0
    most_cycles_to_the_end: int = 0


TOTALS = Totals()


class Rollouts(RuleBasedStateMachine):
    """One deployment, everything that can happen to it, and what must always hold."""

    one: Deployment
    policy: DeploymentPolicy | None

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.due_at: datetime | None = NOW
        self.waits_for_person = False
        self.ended: list[people.Ended] = []
        self.held: list[tuple[ClassifiedDecision, datetime]] = []
        self.asked_for = {V1}
        TOTALS.runs += 1

    @initialize(
        n=COUNTS,
        policy=policies(),
        desired=st.sampled_from([None, None, None, 0, 2, 5]),
        parked=st.sampled_from(["", "", "▫▫", "▫▫▫"]),
        of=st.sampled_from([V2, V3]),
    )
    def a_rollout_begins(self, n: int, policy: DeploymentPolicy, desired: int | None, parked: str, of: UUID) -> None:
        routes = routes_of(f"{'■' * n}|{parked}", V1, of)
        self.one, self.policy = resting("", n, READY, current_revision_id=V1, routes=routes), policy
        self.asked_for |= {of}
        self.command(lambda: people.activate_revision(self.one, V2, self.policy, self.now, desired=desired))
        self.asked_for.add(V2)

    # --- the coordinator

    @rule(seconds=SECONDS)
    def a_cycle_after(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.look()

    @rule()
    def a_cycle(self) -> None:
        self.look()

    @rule()
    def cycles_until_it_waits(self) -> None:
        for _ in range(20):
            if self.one.status == DESTROYED or self.due_at is None or self.due_at > self.now:
                return
            self.look()

    @rule()
    def two_cycles_from_the_same_snapshot(self) -> None:
        if self.one.status == DESTROYED:
            return
        first, second = cycle(self.one, self.now), cycle(self.one, self.now)
        assert first == second
        assert self.apply(first, self.now)
        assert self.apply(second, self.now) != first.changes_anything

    @rule()
    def a_crash_between_deciding_and_applying(self) -> None:
        if self.one.status != DESTROYED:
            self.held.append((cycle(self.one, self.now), self.now))
            TOTALS.decisions_lost += 1

    @rule(which=WHICH)
    def a_stale_decision_arrives_late(self, which: int) -> None:
        if not self.held:
            return
        decision, at = self.held.pop(which % len(self.held))
        if decision.deployment.version != self.one.version:
            before = self.one
            assert not self.apply(decision, at)
            assert self.one is before

    def look(self) -> None:
        if self.one.status != DESTROYED:
            assert self.apply(cycle(self.one, self.now), self.now)

    def apply(self, decision: ClassifiedDecision, at: datetime) -> bool:
        """False when the deployment has changed since the snapshot, as the applier finds by its version."""
        if decision.deployment.version != self.one.version:
            TOTALS.stale_decisions_refused += 1
            return False
        assert decision.verdict is not Verdict.ERROR, decision.reason
        check_safety(decision, at)
        if decision.changes_anything and self.one.rollout is not None:
            replay(decision, at)
        TOTALS.cycles += 1
        before, self.one = self.one, applied(decision, at, stopping=True)
        assert self.one.version - before.version == decision.changes_anything
        self.due_at, self.waits_for_person = decision.due_at, decision.clock_stopped
        TOTALS.parked += len(decision.changes.park_route_ids)
        TOTALS.brought_back += len(
            {route.id for route in before.routes if route.parked_until} & set(decision.changes.promote_route_ids)
        )
        if before.rollout is not None and decision.revision is not RevisionMove.KEEP:
            swapped = decision.revision is RevisionMove.SWAP
            assert swapped or self.one.desired_replicas == before.rollout.desired_at_start
            self.end(before, RolloutOutcome.COMPLETED if swapped else RolloutOutcome.ROLLED_BACK)
        return True

    # --- the replicas

    @rule(which=WHICH, becomes=st.sampled_from([RouteStatus.HEALTHY, RouteStatus.HEALTHY, RouteStatus.FAILED]))
    def a_start_ends(self, which: int, becomes: RouteStatus) -> None:
        self.becomes(which, {RouteStatus.PROVISIONING}, becomes)

    @rule(which=WHICH)
    def a_replica_sickens(self, which: int) -> None:
        self.becomes(which, {RouteStatus.HEALTHY}, RouteStatus.UNHEALTHY)

    @rule(which=WHICH, becomes=st.sampled_from([RouteStatus.HEALTHY, RouteStatus.DEGRADED]))
    def a_sick_replica_flaps(self, which: int, becomes: RouteStatus) -> None:
        self.becomes(which, {RouteStatus.UNHEALTHY, RouteStatus.DEGRADED}, becomes)

    @rule(which=WHICH)
    def a_replica_dies(self, which: int) -> None:
        self.becomes(which, {status for status in RouteStatus if status.is_active}, RouteStatus.FAILED)

    @rule()
    def everything_comes_up(self) -> None:
        self.replicas_changed(all_started(self.one, self.now))

    @rule()
    def everything_that_starts_fails(self) -> None:
        starting = [route.id for route in self.one.routes if route.status is RouteStatus.PROVISIONING]
        TOTALS.replica_faults += len(starting)
        self.replicas_changed(with_status(self.one, starting, RouteStatus.FAILED, self.now))

    @rule()
    def what_was_drained_has_stopped(self) -> None:
        self.replicas_changed(stopped(self.one))

    def becomes(self, which: int, was: set[RouteStatus], status: RouteStatus) -> None:
        chosen: list[Route] = [route for route in self.one.routes if route.status in was]
        if chosen:
            TOTALS.replica_faults += status is not RouteStatus.HEALTHY
            route = chosen[which % len(chosen)]
            self.replicas_changed(with_status(self.one, [route.id], status, self.now))

    def replicas_changed(self, after: Deployment) -> None:
        if after != self.one:
            self.one, self.due_at = replace(after, version=self.one.version + 1), self.now

    # --- the people

    @rule(n=COUNTS)
    def scale(self, n: int) -> None:
        self.command(lambda: steering.scale(self.one, n))

    @rule()
    def pause(self) -> None:
        self.command(lambda: steering.pause(self.one, people.asking(self.one, self.now)))

    @rule()
    def resume(self) -> None:
        self.command(lambda: steering.resume(self.one))

    @rule()
    def promote(self) -> None:
        self.command(lambda: steering.promote(self.one))

    @rule()
    def abort(self) -> None:
        self.command(lambda: steering.abort(self.one, people.asking(self.one, self.now)))

    @rule(revision=REVISIONS, supersede=st.booleans(), desired=st.sampled_from([None, None, 0, 2, 5]))
    def activate(self, revision: UUID, supersede: bool, desired: int | None) -> None:  # noqa: FBT001
        if self.command(
            lambda: people.activate_revision(
                self.one, revision, self.policy, self.now, supersede=supersede, desired=desired
            )
        ):
            self.asked_for.add(revision)

    @rule()
    def activate_what_is_current(self) -> None:
        current = self.one.current_revision_id
        assert current is not None
        self.command(lambda: people.activate_revision(self.one, current, self.policy, self.now, supersede=True))

    @rule()
    def undo(self) -> None:
        self.command(lambda: people.undo_rollout(self.one, self.policy, self.ended, self.now))

    @rule()
    def retry(self) -> None:
        self.command(lambda: people.retry_rollout(self.one, self.policy, self.ended, self.now))

    @rule(policy=st.one_of(st.none(), policies(), policies()))
    def set_policy(self, policy: DeploymentPolicy | None) -> None:
        self.policy = policy

    @rule(really=st.integers(0, 9))
    def destroy(self, really: int) -> None:
        if really == 0:
            self.command(lambda: steering.destroy(self.one, people.asking(self.one, self.now)))

    def command(self, do: Callable[[], Steered]) -> bool:
        """Carried out, or refused; either way the deployment makes sense afterwards."""
        TOTALS.commands += 1
        before = self.one
        try:
            steered = do()
        except RollwayError:
            TOTALS.commands_refused += 1
            return False
        if steered.already:
            assert steered.deployment is before
            return True
        after = steered.deployment
        assert after.version == before.version + 1
        self.one, self.due_at = after, self.now
        if before.rollout is not None and (after.rollout is None or after.rollout.id != before.rollout.id):
            assert steered.ended is (RolloutOutcome.SUPERSEDED if after.rollout else RolloutOutcome.DESTROYED)
            self.end(before, steered.ended)
        if after.rollout is not None and (before.rollout is None or before.rollout.id != after.rollout.id):
            TOTALS.rollouts += 1
        return True

    def end(self, before: Deployment, outcome: RolloutOutcome) -> None:
        assert before.rollout is not None
        self.ended.append(people.Ended(before.rollout, outcome))
        setattr(TOTALS, outcome.value, getattr(TOTALS, outcome.value) + 1)

    # --- what must hold

    @invariant()
    def the_row_makes_sense(self) -> None:
        if not hasattr(self, "one"):
            return
        one = self.one
        TOTALS.invariants_checked += 1
        deploying = one.status.lifecycle is Lifecycle.DEPLOYING
        assert deploying == (one.rollout is not None)
        assert deploying == (one.deploying_revision_id is not None)
        assert deploying == (one.status.sub_step is not None)
        assert one.current_revision_id is not None
        assert one.current_revision_id != one.deploying_revision_id
        assert one.paused_at is None or deploying
        assert (one.degraded_reason is None) == (one.retry_at is None)
        assert one.desired_replicas >= 0
        if one.rollout is not None:
            assert one.rollout.to_revision_id == one.deploying_revision_id
            assert one.rollout.from_revision_id == one.current_revision_id

    @invariant()
    def no_route_is_of_a_revision_that_nobody_asked_for(self) -> None:
        if hasattr(self, "one"):
            assert {route.revision_id for route in self.one.routes} <= self.asked_for
            assert len({route.id for route in self.one.routes}) == len(self.one.routes)
            assert self.one.status != DESTROYED or not self.one.routes
            for route in self.one.routes:
                assert route.parked_until is None or not route.is_serving

    # --- a kind world

    def teardown(self) -> None:
        """Everything that starts becomes healthy, what is asked of a person is done, and nobody interferes."""
        if not hasattr(self, "one"):
            return
        for number in range(KIND_CYCLES):
            if self.rests():
                break
            self.somebody_helps()
            self.replicas_changed(stopped(all_started(self.one, self.now)))
            if self.due_at is not None:
                self.now = max(self.now, self.due_at)
                self.look()
            TOTALS.most_cycles_to_the_end = max(TOTALS.most_cycles_to_the_end, number)
        else:
            raise AssertionError(f"no end after {KIND_CYCLES} cycles in a kind world: {self.one}")
        self.it_is_complete()

    def rests(self) -> bool:
        if self.one.status == DESTROYED:
            return True
        on_the_way = {RouteStatus.PROVISIONING, RouteStatus.TERMINATING} & {route.status for route in self.one.routes}
        return self.one.status == READY and self.due_at is None and not on_the_way

    def somebody_helps(self) -> None:
        if self.one.paused_at is not None:
            self.command(lambda: steering.resume(self.one))
        elif self.waits_for_person and self.one.status.sub_step is DeploymentSubStep.PROVISIONING:
            self.command(lambda: steering.promote(self.one))

    def it_is_complete(self) -> None:
        one = self.one
        if one.status == DESTROYED:
            assert not one.routes
            return
        assert one.degraded_reason is None
        assert [(route.revision_id, route.is_serving) for route in one.routes] == [
            (one.current_revision_id, True)
        ] * one.desired_replicas


def replay(decision: ClassifiedDecision, at: datetime) -> None:
    """What is stored of this step, through JSON text, gives the same decision once more."""
    inputs, said = json.loads(inputs_json(decision.deployment, at)), json.loads(decision_json(decision))
    assert replay_step(inputs, handler_of(decision.deployment).name) == said
    TOTALS.steps_replayed += 1


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
