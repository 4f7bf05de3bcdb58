"""People as rules of the machine: whatever they may ask of a deployment, at any moment."""

from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import rule

from domain.model.policy import DeploymentPolicy
from domain.steering import verbs as steering
from tests.support.people import people
from tests.support.pictures.pictures import V1, V2, V3
from tests.support.pictures.snapshots import policies
from tests.support.worlds.rollout_world import RolloutWorld

REVISIONS = st.sampled_from([V1, V2, V2, V3])
COUNTS = st.sampled_from([3, 5, 8, 4, 3, 2, 1, 0])


class People(RolloutWorld):
    @rule(n=COUNTS)
    def scale(self, n: int) -> None:
        self.command(lambda: steering.scale(self.deployment, n))

    @rule()
    def pause(self) -> None:
        self.command(lambda: steering.pause(self.deployment, people.asking(self.deployment, self.now)))

    @rule()
    def resume(self) -> None:
        self.command(lambda: steering.resume(self.deployment, people.asking(self.deployment, self.now)))

    @rule()
    def promote(self) -> None:
        self.command(lambda: steering.promote(self.deployment))

    @rule()
    def abort(self) -> None:
        self.command(lambda: steering.abort(self.deployment, people.asking(self.deployment, self.now)))

    @rule(revision=REVISIONS, supersede=st.booleans(), desired=st.sampled_from([None, None, 0, 2, 5]))
    def activate(self, revision: UUID, supersede: bool, desired: int | None) -> None:  # noqa: FBT001
        if self.command(
            lambda: people.activate_revision(
                self.deployment, revision, self.policy, self.now, supersede=supersede, desired=desired
            )
        ):
            self.asked_for.add(revision)

    @rule()
    def activate_what_is_current(self) -> None:
        current = self.deployment.current_revision_id
        assert current is not None
        self.command(lambda: people.activate_revision(self.deployment, current, self.policy, self.now, supersede=True))

    @rule()
    def undo(self) -> None:
        self.command(lambda: people.undo_rollout(self.deployment, self.policy, self.ended, self.now))

    @rule()
    def retry(self) -> None:
        self.command(lambda: people.retry_rollout(self.deployment, self.policy, self.ended, self.now))

    @rule(policy=st.one_of(st.none(), policies(), policies()))
    def set_policy(self, policy: DeploymentPolicy | None) -> None:
        self.policy = policy

    @rule(really=st.integers(0, 9))
    def destroy(self, really: int) -> None:
        if really == 0:
            self.command(lambda: steering.destroy(self.deployment, people.asking(self.deployment, self.now)))
