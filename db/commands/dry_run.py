"""Foretells what a command leads to: by its own rule, on a snapshot that nobody locks, and written nowhere."""

from dataclasses import dataclass, replace
from uuid import UUID, uuid4

from psycopg import Connection

from db.commands.new_revisions import changed_revision
from db.commands.steering import StoredCase
from db.views.deployment_views import deployment_named
from db.views.fleet_views import signs_of_life
from db.views.planning_views import foreseeable, hosts_ahead
from domain.commands.steering_command import SteeringCommand
from domain.planning.plan_input import Planned, Subject, says_when_healthy
from domain.revisions.revision import revision_name
from domain.steering.activation import ActivationRequest, restarted_revision
from domain.steering.command_effect import Context

_NO_ROLLOUT_YET = UUID(int=0)
_CURRENT = "SELECT name FROM revisions WHERE id = %s"
_SPEC = "SELECT spec FROM revisions WHERE id IN (%s, %s) ORDER BY id = %s DESC LIMIT 1"


@dataclass(frozen=True, slots=True)
class DryRunCase(StoredCase):
    """A command that is not given: it writes nothing, so a revision that it would add has an id of its own.

    Secrets are not looked at, and what starts something is planned in a freeze too: it may be for a later time.
    """

    def activation(
        self, revision: str, *, supersede: bool = False, desired: int | None = None, with_secrets: bool = False
    ) -> ActivationRequest:
        """Read what is asked of the revision with that name. Raises RevisionNotFoundError."""
        del with_secrets
        request = StoredCase.activation(self, revision, supersede=supersede, desired=desired)
        return replace(request, frozen=None)

    def changed(self) -> ActivationRequest:
        """The activation of the revision that a rolling update names or makes. Raises as `changed_revision` does."""
        revision = changed_revision(self.connection, self.deployment, self.command)
        if isinstance(revision, str):
            return self.activation(revision, supersede=self.command.supersede)
        name = revision.name or revision_name(self.deployment.name, revision.spec)
        labels, ahead = revision.spec.hosts, hosts_ahead(self.connection, revision.spec.model_dump())
        request = replace(self._unstored(name, self.command.supersede), labels=labels, hosts=self.hosts(labels))
        return replace(request, prepares=ahead.preparations is not None, devices=ahead.devices)

    def same_again(self) -> ActivationRequest:
        """The activation of a new revision with the content of the current one. Raises WrongStateError."""
        restarted_revision(self.deployment)
        return self._unstored("")

    def _unstored(self, name: str, supersede: bool = False) -> ActivationRequest:  # noqa: FBT001, FBT002
        row = self.connection.execute(_CURRENT, (self.deployment.current_revision_id,)).fetchone()
        request = self.activation(row[0] if row else "", supersede=supersede)
        return replace(request, revision_id=uuid4(), revision_name=name)


def dry_run(connection: Connection, command: SteeringCommand) -> Planned:
    """The deployment as the command would leave it. Raises what the command itself would raise."""
    view = deployment_named(connection, command.deployment)
    now_foreseeable = foreseeable(connection, view)
    asking = Context("in a plan", now_foreseeable.now, _NO_ROLLOUT_YET)
    case = DryRunCase(connection, now_foreseeable.deployment, command, asking, None, has_subscribers=False)
    after = case.steered().deployment
    runs = after.deploying_revision_id or after.current_revision_id
    row = connection.execute(_SPEC, (runs, view.current_revision_id, runs)).fetchone()
    is_checked, missing_evidence = row is None or says_when_healthy(row[0]), signs_of_life(connection).missing_evidence
    if row:
        after = hosts_ahead(connection, row[0], runs).prepared(after)
    return Planned(Subject(after, is_checked, missing_evidence), now_foreseeable.learned, now_foreseeable.now)
