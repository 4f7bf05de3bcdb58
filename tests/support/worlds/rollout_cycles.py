"""Cycles of the coordinator as rules of the machine: in time, from a stale snapshot, lost in a crash."""

from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import rule

from domain.handlers.dispatch import cycle
from tests.support.pictures.pictures import DESTROYED
from tests.support.worlds.rollout_world import TOTALS, RolloutWorld

SECONDS = st.sampled_from([0, 1, 5, 31, 200, 2000])
WHICH = st.integers(0, 15)


class Cycles(RolloutWorld):
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
            if self.deployment.status == DESTROYED or self.due_at is None or self.due_at > self.now:
                return
            self.look()

    @rule()
    def two_cycles_from_the_same_snapshot(self) -> None:
        if self.deployment.status == DESTROYED:
            return
        first, second = cycle(self.deployment, self.now), cycle(self.deployment, self.now)
        assert first == second
        assert self.apply(first, self.now)
        assert self.apply(second, self.now) != first.changes_anything

    @rule()
    def a_crash_between_deciding_and_applying(self) -> None:
        if self.deployment.status != DESTROYED:
            self.held.append((cycle(self.deployment, self.now), self.now))
            TOTALS.decisions_lost += 1

    @rule(which=WHICH)
    def a_stale_decision_arrives_late(self, which: int) -> None:
        if not self.held:
            return
        decision, at = self.held.pop(which % len(self.held))
        if decision.deployment.version != self.deployment.version:
            before = self.deployment
            assert not self.apply(decision, at)
            assert self.deployment is before

    def look(self) -> None:
        if self.deployment.status != DESTROYED:
            assert self.apply(cycle(self.deployment, self.now), self.now)
