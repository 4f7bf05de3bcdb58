"""`rollway pause`, `resume`, `promote`, `abort`, `undo` and `retry`: steering a rollout that is under way, or was."""

from typing import Annotated

import typer

from cli.commands.write import end_of_command, send_command, told_activation
from cli.options import WAIT_SECONDS, Actor, AsJson, DeploymentName, Reason, RequestId, Timeout, Wait
from cli.servers import Reader
from cli.show.waiting import rollout_completed, settled
from db.views.deployments import deployment_named
from domain.commands import Abort, Pause, Promote, Resume, Retry, Undo


def pause(
    *, deployment: DeploymentName, reason: Reason = "", actor: Actor, request_id: RequestId, as_json: AsJson = False
) -> None:
    """Hold a rollout where it is. Nothing is created or drained, and its deadlines stand still."""
    with Reader() as reader:
        there = reader.read(deployment_named, deployment)
        result = send_command(Pause, {"deployment": deployment}, reason, actor, request_id)
        said = f"{deployment} is paused{' already' if result['already'] else ''}"
        end_of_command(reader, there.id, result, said, None, 0, as_json=as_json)


def resume(
    *,
    deployment: DeploymentName,
    wait: Wait = False,
    timeout: Timeout = WAIT_SECONDS,
    reason: Reason = "",
    actor: Actor,
    request_id: RequestId,
    as_json: AsJson = False,
) -> None:
    """Go on with a paused rollout. Its deadlines move by the time it was paused."""
    with Reader() as reader:
        there = reader.read(deployment_named, deployment)
        result = send_command(Resume, {"deployment": deployment}, reason, actor, request_id)
        goal = rollout_completed if wait else None
        end_of_command(reader, there.id, result, f"{deployment} goes on", goal, timeout, as_json=as_json)


def promote(
    *,
    deployment: DeploymentName,
    wait: Wait = False,
    timeout: Timeout = WAIT_SECONDS,
    reason: Reason = "",
    actor: Actor,
    request_id: RequestId,
    as_json: AsJson = False,
) -> None:
    """Move the traffic to the green set of a blue-green rollout, as soon as it is healthy."""
    with Reader() as reader:
        there = reader.read(deployment_named, deployment)
        result = send_command(Promote, {"deployment": deployment}, reason, actor, request_id)
        goal = rollout_completed if wait else None
        said = f"{deployment} is promoted as soon as green is healthy"
        end_of_command(reader, there.id, result, said, goal, timeout, as_json=as_json)


def abort(
    *,
    deployment: DeploymentName,
    wait: Wait = False,
    timeout: Timeout = WAIT_SECONDS,
    reason: Reason = "",
    actor: Actor,
    request_id: RequestId,
    as_json: AsJson = False,
) -> None:
    """Leave a rollout: old and new trade places, within the same budget."""
    with Reader() as reader:
        there = reader.read(deployment_named, deployment)
        result = send_command(Abort, {"deployment": deployment}, reason, actor, request_id)
        said = f"{deployment} is going back{' already' if result['already'] else ''}"
        end_of_command(
            reader, there.id, {**result, "rollout_id": None}, said, settled if wait else None, timeout, as_json=as_json
        )


def undo(
    *,
    deployment: DeploymentName,
    to: Annotated[
        str | None, typer.Option("--to", metavar="REVISION", help="A named revision.", show_default="the one before")
    ] = None,
    wait: Wait = False,
    timeout: Timeout = WAIT_SECONDS,
    reason: Reason = "",
    actor: Actor,
    request_id: RequestId,
    as_json: AsJson = False,
) -> None:
    """Go back to the revision that ran before, or to a named one. In the middle of a rollout it is an abort."""
    with Reader() as reader:
        there = reader.read(deployment_named, deployment)
        result = send_command(Undo, {"deployment": deployment, "revision": to}, reason, actor, request_id)
        said = told_activation(result) if "activation" in result else f"{deployment} is going back"
        end_of_command(reader, there.id, result, said, settled if wait else None, timeout, as_json=as_json)


def retry(
    *,
    deployment: DeploymentName,
    wait: Wait = False,
    timeout: Timeout = WAIT_SECONDS,
    reason: Reason = "",
    actor: Actor,
    request_id: RequestId,
    as_json: AsJson = False,
) -> None:
    """Begin the rollout that was rolled back last once more. One that is just rolling back turns forward again."""
    with Reader() as reader:
        there = reader.read(deployment_named, deployment)
        result = send_command(Retry, {"deployment": deployment}, reason, actor, request_id)
        goal = rollout_completed if wait and result["rollout_id"] else None
        end_of_command(reader, there.id, result, told_activation(result), goal, timeout, as_json=as_json)
