"""`rollway rolling-update`: what runs, with another image or command, as one rollout."""

import json
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from cli.commands.deployments.change import VERBS
from cli.completing import revisions_offered
from cli.options import WAIT_SECONDS, Actor, AsJson, DeploymentName, Reason, RequestId, Supersede, Timeout
from cli.sending import carry_out, send_command
from cli.servers import Reader
from cli.terminal.dashes import TakesCommand, behind_dashes
from cli.terminal.exits import UsageError
from cli.terminal.output import print_json, printer
from db.views.deployments import DeploymentView, deployment_named
from db.views.timeline import RevisionView, revision_shown
from domain.commands.deployment import AddRevision
from domain.revisions.revision import RevisionSpec
from domain.revisions.stored import stored_spec
from domain.steering.past import AlreadyUndoneError
from domain.words.errors import InvalidInputError, RevisionNotFoundError, WrongStateError


@dataclass(frozen=True, slots=True)
class _Next:
    """The revision that is rolled out; without a spec it exists already.

    `name`: None where its content is to name it. `values_of`: which revision has the values that are not shown here.
    """

    name: str | None
    spec: RevisionSpec | None = None
    values_of: str | None = None


def rolling_update(
    *,
    context: typer.Context,
    deployment: DeploymentName,
    revision: Annotated[
        str | None,
        typer.Argument(
            metavar="[NEXT]",
            help="Name of the revision.",
            show_default="made from its content",
            autocompletion=revisions_offered,
        ),
    ] = None,
    image: Annotated[
        str | None, typer.Option("--image", help="The image of its containers from now on.", show_default=False)
    ] = None,
    rollback: Annotated[bool, typer.Option("--rollback", help="Turn it back.")] = False,
    supersede: Supersede = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it has happened, and show how.")] = True,
    timeout: Timeout = WAIT_SECONDS,
    reason: Reason = "",
    actor: Actor,
    request_id: RequestId,
    as_json: AsJson = False,
) -> None:
    """Roll out what runs with another image or command. With NEXT alone: a revision that exists.

    Everything else is as in the current revision. A NEXT that is not given is named by its content, so that the same
    line asked again, after a crash or Ctrl-C, goes on with its rollout instead of beginning a second one, and has
    nothing to do once it is completed. Neither NEXT nor a change: the rollout that is under way.

    With --rollback a rollout under way turns back, and a completed one is undone.
    """
    how: dict[str, Any] = {"wait": wait, "timeout": timeout, "reason": reason, "actor": actor, "as_json": as_json}
    command = behind_dashes(context)
    with Reader() as reader:
        view = reader.read(deployment_named, deployment)
        if not rollback:
            chosen = _next(reader, view, revision, image, command)
            return _roll_out(deployment, chosen, request_id, how | {"supersede": supersede})
    if image is not None or command:
        raise UsageError("--rollback goes back to what ran before: leave out --image and the command")
    _refuse_stranger(view, revision)
    return _roll_back(deployment, request_id, how)


def _next(reader: Reader, view: DeploymentView, name: str | None, image: str | None, command: tuple[str, ...]) -> _Next:
    """Raises UsageError, WrongStateError, RevisionNotFoundError and InvalidInputError."""
    if image is None and not command:
        wanted = name or view.deploying_revision
        if wanted is None:
            raise UsageError("say what changes: --image IMAGE, -- COMMAND, or the name of a revision that exists")
        if name is not None and reader.read(revision_shown, view.id, name) is None:
            message = f"{view.name} has no revision {name}; with --image or -- COMMAND it is made"
            raise RevisionNotFoundError(message, deployment=view.name, revision=name)
        return _Next(wanted)
    if view.current_revision is None:
        message = f"{view.name} runs nothing that could be changed: 'rollway apply' gives it a first revision"
        raise WrongStateError(message, deployment=view.name, state=view.state)
    current = reader.read(revision_shown, view.id, view.current_revision)
    if current is None:  # between two reads it was replaced and cut
        raise WrongStateError(f"{view.name} has just changed; ask again", deployment=view.name)
    before, spec = _changed(current, image, command)
    if name is None and spec == before:
        return _Next(current.name)
    return _Next(name, spec, current.name)


def _changed(current: RevisionView, image: str | None, command: tuple[str, ...]) -> tuple[RevisionSpec, RevisionSpec]:
    """What the revision runs, and the same with the change. Raises InvalidInputError."""
    stored = stored_spec(json.dumps(current.spec))
    if stored.unreadable:
        raise InvalidInputError(f"{current.name}: {stored.unreadable}", field="revision")
    change: dict[str, Any] = {"command": list(command)} if command else {}
    if image is not None:
        if stored.spec.docker is None:
            message = f"--image: {current.name} runs with runtime {stored.spec.runtime!r}, which has no image"
            raise InvalidInputError(f"{message}; '-- COMMAND' changes what it runs", field="--image")
        change["docker"] = {**stored.spec.docker.model_dump(mode="json"), "image": image}
    payload = {**stored.spec.model_dump(mode="json"), **change}
    try:
        return stored.spec, RevisionSpec.model_validate(payload)
    except ValidationError as error:
        raise InvalidInputError.of(error, model=RevisionSpec) from None


def _refuse_stranger(view: DeploymentView, revision: str | None) -> None:
    """Raises WrongStateError where NEXT is given and neither runs nor is on its way, so nothing of it turns back."""
    if revision in (None, view.deploying_revision, view.current_revision):
        return
    runs = view.deploying_revision or view.current_revision
    message = f"{view.name} does not go to {revision} and does not run it, but {runs}; 'rollway history' shows why"
    raise WrongStateError(message, deployment=view.name, state=view.state)


def _roll_out(deployment: str, chosen: _Next, request_id: str, how: dict[str, Any]) -> None:
    """What was done already is not done again."""
    revision = chosen.name
    if chosen.spec is not None:
        spec = chosen.spec.model_dump(mode="json")
        payload = {"deployment": deployment, "name": chosen.name, "spec": spec, "values_of": chosen.values_of}
        asked = {"reason": how["reason"], "actor": how["actor"], "request_id": f"{request_id}/revision"}
        revision = send_command(AddRevision, **payload, **asked)["revision"]
    asked_as = f"{request_id}/rollout"
    carry_out(VERBS["activate"], deployment=deployment, revision=revision, request_id=asked_as, **how)


def _roll_back(deployment: str, request_id: str, how: dict[str, Any]) -> None:
    """Asked again, it goes on waiting, and has nothing to do when it is back."""
    try:
        carry_out(VERBS["undo"], deployment=deployment, revision=None, request_id=request_id, **how)
    except AlreadyUndoneError as error:
        printer(quiet=how["as_json"]).print(f"{error.message.partition(';')[0]}; nothing to do")
        if how["as_json"]:
            print_json({"deployment": deployment, "already": True})


rolling_update.command_class = TakesCommand  # type: ignore[attr-defined]  # functions have what one gives them
