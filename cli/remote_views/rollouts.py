"""Rollouts over HTTP: what a plan is made from, steps and receipts."""

from uuid import UUID

from cli.remote import Remote
from cli.remote_views.asking import made, path_of
from db.audit.shown import ReceiptView
from db.views.ahead.foresight import Foreseeable, LearnedView
from db.views.deployments import DeploymentView
from db.views.rollouts import RolloutView
from db.views.timeline import StepView
from domain.words.errors import RolloutNotFoundError


def foreseeable(remote: Remote, view: DeploymentView) -> Foreseeable:
    """The deployment of the view, as a plan of it begins."""
    return Foreseeable.of(view, made(LearnedView, remote.get(f"{path_of(view.name)}/learned")))


def receipt_shown(remote: Remote, named: UUID | str) -> ReceiptView:
    """The receipt of the rollout of that id, or of the last one of the deployment of that name."""
    of = f"/v1/rollouts/{named}" if isinstance(named, UUID) else path_of(named)
    return made(ReceiptView, remote.get(f"{of}/receipt"))


def last_rollout_of(remote: Remote, name: str) -> RolloutView:
    """The newest rollout of the deployment. Raises DeploymentNotFoundError and RolloutNotFoundError."""
    found = remote.get(f"{path_of(name)}/rollouts", limit=1)["items"]
    if not found:
        raise RolloutNotFoundError.of_deployment(name)
    return made(RolloutView, found[0])


def steps_of(remote: Remote, rollout_id: UUID, after: int = 0) -> list[StepView]:
    """The steps of a rollout with numbers above `after`, in order."""
    found = remote.get(f"/v1/rollouts/{rollout_id}/steps", after=after)["items"]
    return [made(StepView, document) for document in found]
