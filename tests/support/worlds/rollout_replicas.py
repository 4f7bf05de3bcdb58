"""Replicas as rules of the machine: they start, sicken, flap, die and stop."""

from hypothesis import strategies as st
from hypothesis.stateful import rule

from domain.model.states import RouteStatus
from domain.planning.simulator import with_status
from tests.support.pictures.simulation import all_started, stopped
from tests.support.worlds.rollout_world import TOTALS, RolloutWorld

WHICH = st.integers(0, 15)


class Replicas(RolloutWorld):
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
        self.replicas_changed(all_started(self.deployment, self.now))

    @rule()
    def everything_that_starts_fails(self) -> None:
        starting = [route.id for route in self.deployment.routes if route.status is RouteStatus.PROVISIONING]
        TOTALS.replica_faults += len(starting)
        self.replicas_changed(with_status(self.deployment, starting, RouteStatus.FAILED, self.now))

    @rule()
    def what_was_drained_has_stopped(self) -> None:
        self.replicas_changed(stopped(self.deployment))

    def becomes(self, which: int, was: set[RouteStatus], status: RouteStatus) -> None:
        chosen = [route for route in self.deployment.routes if route.status in was]
        if chosen:
            TOTALS.replica_faults += status is not RouteStatus.HEALTHY
            route = chosen[which % len(chosen)]
            self.replicas_changed(with_status(self.deployment, [route.id], status, self.now))
