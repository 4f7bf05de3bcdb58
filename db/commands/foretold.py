"""What a command would lead to: decided by its own rule, on a snapshot that nobody locks, and written nowhere."""

import random
from uuid import UUID, uuid4

from psycopg import Connection

from db.commands.steering import Case
from db.views.ahead.foresight import foreseeable
from db.views.ahead.planned import Planned, activated
from db.views.deployments import DeploymentView, deployment_named
from domain.commands.base import DeploymentCommand
from domain.commands.rollout import ActivateRevision, Restart
from domain.foresight.plan.foreseen import Plan, plan
from domain.foresight.plan.subject import Subject, after_activation, says_when_healthy
from domain.model.deployment import Deployment
from domain.steering.activation import ActivationRequest, restarted_revision
from domain.steering.steered import Asking
from domain.strategies import stored_policy

_NO_ROLLOUT_YET = UUID(int=0)
_SPEC = "SELECT spec FROM revisions WHERE id = %s"


def plan_of(found: Planned, command: DeploymentCommand) -> Plan:
    """What the command would do, wave by wave, from what was foretold of it."""
    revision = getattr(command, "revision", None) or ""
    chance = random.Random(f"{command.deployment} {revision} 0").random  # noqa: S311  (the same question, the same answer)
    return plan(found.subject, found.now, found.learned, chance)


def foretold(connection: Connection, command: DeploymentCommand) -> Planned:
    """The deployment as one of the commands of RULES would leave it. Raises what the command itself would raise.

    Secrets are not looked at, and an activation or a restart is planned in a freeze too: it may be for a later time.
    """
    if isinstance(command, ActivateRevision):
        return activated(connection, command.deployment, command.revision)
    view = deployment_named(connection, command.deployment)
    known = foreseeable(connection, view)
    asking = Asking("in a plan", known.now, _NO_ROLLOUT_YET)
    if isinstance(command, Restart):
        after, runs = _restarted(known.deployment, view, asking), view.current_revision_id
    else:
        case = Case(connection, known.deployment, command, asking, None, is_heard=False)
        after = case.steered().deployment
        runs = after.deploying_revision_id or after.current_revision_id
    row = connection.execute(_SPEC, (runs,)).fetchone()
    return Planned(Subject(after, row is None or says_when_healthy(row[0])), known.learned, known.now)


def _restarted(deployment: Deployment, view: DeploymentView, asking: Asking) -> Deployment:
    """A restart runs the current revision under a name that only the command itself gives it."""
    restarted_revision(deployment)
    policy = stored_policy(view.policy) if view.policy else None
    request = ActivationRequest(uuid4(), str(view.current_revision), None, policy)
    return after_activation(deployment, request, asking.at)
