"""`rollway activate`, `scale` and `destroy`."""

import sys
from typing import Annotated, Any
from uuid import UUID

import typer

from cli.exits import UsageError
from cli.options import WAIT_SECONDS, Actor, AsJson, DeploymentName, Reason, RequestId, Timeout, Wait
from cli.output import print_json, printer
from cli.servers import Reader, send
from cli.show.film import Film
from cli.show.waiting import Goal, destroyed, rollout_completed, settled, wait_until
from db.views.deployments import deployment_named
from domain.activation import Activation
from domain.commands import MAX_REPLICAS, ActivateRevision, Command, Destroy, Scale
from domain.messages import parse_command

_ACTIVATED = {
    Activation.FIRST: "{revision} is the first revision of {deployment}",
    Activation.BEGUN: "rollout of {deployment} to {revision} begun",
    Activation.RESUMED: "{deployment} is already rolling out {revision}",
    Activation.SUPERSEDED: "rollout of {deployment} to {revision} begun, leaving the one before",
    Activation.MOVED: "{deployment} changes to {revision} without a rollout, since it has no policy",
    Activation.CONVERGING: "{deployment} is already changing to {revision}",
    Activation.ALREADY_ACTIVE: "{revision} is already active in {deployment}; nothing to do",
}


def activate(
    *,
    deployment: DeploymentName,
    revision: Annotated[str, typer.Argument(metavar="REVISION", help="Name of the revision.", show_default=False)],
    supersede: Annotated[bool, typer.Option("--supersede", help="Leave a rollout to another revision.")] = False,
    replicas: Annotated[
        int | None,
        typer.Option(
            "--replicas", min=0, max=MAX_REPLICAS, help="A new size; rolled back with it.", show_default=False
        ),
    ] = None,
    wait: Wait = False,
    timeout: Timeout = WAIT_SECONDS,
    reason: Reason = "",
    actor: Actor,
    request_id: RequestId,
    as_json: AsJson = False,
) -> None:
    """Make a revision the running one. With a policy that is a rollout, without one the replicas are just replaced.

    With --wait the exit code is 1 when the rollout was rolled back.
    """
    with Reader() as reader:
        there = reader.read(deployment_named, deployment)
        payload = {
            "deployment": deployment,
            "revision": revision,
            "supersede": supersede,
            "desired_replicas": replicas,
        }
        result = send_command(ActivateRevision, payload, reason, actor, request_id)
        said = told_activation(result)
        goal = rollout_completed if result["rollout_id"] else settled
        end_of_command(reader, there.id, result, said, goal if wait else None, timeout, as_json=as_json)


def scale(
    *,
    deployment: DeploymentName,
    replicas: Annotated[
        int, typer.Argument(metavar="N", min=0, max=MAX_REPLICAS, help="Replicas wanted.", show_default=False)
    ],
    wait: Wait = False,
    timeout: Timeout = WAIT_SECONDS,
    reason: Reason = "",
    actor: Actor,
    request_id: RequestId,
    as_json: AsJson = False,
) -> None:
    """Change how many replicas are wanted. It may be done in the middle of a rollout, too."""
    with Reader() as reader:
        there = reader.read(deployment_named, deployment)
        result = send_command(
            Scale, {"deployment": deployment, "desired_replicas": replicas}, reason, actor, request_id
        )
        same = result["from"] == result["to"]
        said = (
            f"{deployment} has {replicas} replicas wanted already"
            if same
            else (f"{deployment} scaled from {result['from']} to {result['to']} replicas")
        )
        goal = settled if there.current_revision_id else None
        end_of_command(reader, there.id, result, said, goal if wait else None, timeout, as_json=as_json)


def destroy(
    *,
    deployment: DeploymentName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    wait: Wait = False,
    timeout: Timeout = WAIT_SECONDS,
    reason: Reason = "",
    actor: Actor,
    request_id: RequestId,
    as_json: AsJson = False,
) -> None:
    """Stop every replica and end the deployment. Asks first, drains first; the history stays."""
    with Reader() as reader:
        there = reader.read(deployment_named, deployment)
        if not yes:
            _ask(deployment, len(there.routes))
        result = send_command(Destroy, {"deployment": deployment}, reason, actor, request_id)
        said = f"{deployment} is being destroyed{' already' if result['already'] else ''}"
        end_of_command(reader, there.id, result, said, destroyed if wait else None, timeout, as_json=as_json)


def _ask(deployment: str, replicas: int) -> None:
    if not sys.stdin.isatty():
        message = f"destroying {deployment} asks first, and nobody is at the terminal to answer: add --yes"
        raise UsageError(message)
    if not typer.confirm(f"Destroy {deployment} and its {replicas} replicas?", err=True):
        raise typer.Exit(1)


def told_activation(result: dict[str, Any]) -> str:
    """What an activation came to, in a sentence."""
    return _ACTIVATED[Activation(result["activation"])].format(**result)


def send_command(
    command: type[Command], payload: dict[str, Any], reason: str, actor: str, request_id: str
) -> dict[str, Any]:
    """Carry out a command and return what it did. Raises its refusals."""
    common = {"reason": reason, "actor": actor, "request_id": request_id}
    return send(parse_command(command.task, {**payload, **common}))


def end_of_command(
    reader: Reader,
    deployment_id: UUID,
    result: dict[str, Any],
    said: str,
    goal: Goal | None,
    timeout: float,
    *,
    as_json: bool,
) -> None:
    """Say what was done, wait for `goal` if there is one, and print the result for a script."""
    console = printer(quiet=as_json)
    console.print(said)
    if goal is not None:
        rollout_id = result.get("rollout_id")
        film = Film(console, rollout_id=UUID(rollout_id) if rollout_id else None)
        view = wait_until(goal, reader, deployment_id, timeout, film).view
        result = {**result, "state": str(view.lifecycle)}
    if as_json:
        print_json(result)
