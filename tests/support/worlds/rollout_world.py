"""The world of one deployment: its snapshot, the clock, and everything that is done to it, checked as it is done.

It is a version and a snapshot. A cycle decides from a snapshot and is applied only while the version is still the
snapshot's, as under the lock of the real one; a crash is a decision that nobody applies.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from hypothesis.stateful import RuleBasedStateMachine

from domain.cycle.recording import decision_json, inputs_json
from domain.cycle.transitions import ClassifiedDecision, RevisionMove
from domain.handlers.dispatch import handler_of, replay_step
from domain.model.deployment import Deployment
from domain.model.policy import DeploymentPolicy
from domain.model.states import RolloutOutcome, Verdict
from domain.steering.command_effect import Effect
from domain.text.errors import RollwayError
from tests.support.people import people
from tests.support.pictures.pictures import NOW, V1
from tests.support.pictures.safety import check_safety
from tests.support.pictures.simulation import applied


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


class RolloutWorld(RuleBasedStateMachine):
    """One deployment, and what cycles, replicas and people do to it."""

    deployment: Deployment
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

    def apply(self, decision: ClassifiedDecision, at: datetime) -> bool:
        """False when the deployment has changed since the snapshot, as the applier finds by its version."""
        if decision.deployment.version != self.deployment.version:
            TOTALS.stale_decisions_refused += 1
            return False
        assert decision.verdict is not Verdict.ERROR, decision.reason
        check_safety(decision, at)
        if decision.changes_anything and self.deployment.rollout is not None:
            replay(decision, at)
        TOTALS.cycles += 1
        before, self.deployment = self.deployment, applied(decision, at, stopping=True)
        assert self.deployment.version - before.version == decision.changes_anything
        self.due_at, self.waits_for_person = decision.due_at, decision.clock_stopped
        TOTALS.parked += len(decision.changes.park_route_ids)
        TOTALS.brought_back += len(
            {route.id for route in before.routes if route.parked_until} & set(decision.changes.promote_route_ids)
        )
        if before.rollout is not None and decision.revision is not RevisionMove.KEEP:
            swapped = decision.revision is RevisionMove.SWAP
            assert swapped or self.deployment.desired_replicas == before.rollout.desired_at_start
            self.end(before, RolloutOutcome.COMPLETED if swapped else RolloutOutcome.ROLLED_BACK)
        return True

    def replicas_changed(self, after: Deployment) -> None:
        if after != self.deployment:
            self.deployment, self.due_at = replace(after, version=self.deployment.version + 1), self.now

    def command(self, do: Callable[[], Effect]) -> bool:
        """Carried out, or refused; either way the deployment makes sense afterwards."""
        TOTALS.commands += 1
        before = self.deployment
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
        self.deployment, self.due_at = after, self.now
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


def replay(decision: ClassifiedDecision, at: datetime) -> None:
    """What is stored of this step, through JSON text, gives the same decision once more."""
    inputs, said = json.loads(inputs_json(decision.deployment, at)), json.loads(decision_json(decision))
    assert replay_step(inputs, handler_of(decision.deployment).name) == said
    TOTALS.steps_replayed += 1
