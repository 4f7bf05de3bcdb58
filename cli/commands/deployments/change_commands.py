"""The commands that change a deployment, and their words at the terminal: `rollway activate`, `pause`, ...

`destroy`.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from cli.apply import text_of
from cli.client import Reader, deployment_named
from cli.commands.machine.stack import restart_parts
from cli.completion import deployments_offered, revisions_offered
from cli.options import WAIT_SECONDS, DeploymentName, Supersede, ThroughFreeze, Timeout, Wait
from cli.sending import Asker, OfAll, Result, Verb, asking, carry_out
from cli.show.rollout_log import destroyed, gone_back, rollout_completed, settled
from cli.subcommands import sends
from cli.terminal.exits import UsageError
from cli.terminal.output import print_json, printer
from db.views.deployment_view import DeploymentView
from domain.commands.deployment_commands import Destroy, Scale, SetMaintenance
from domain.commands.rollout_commands import (
    Abort,
    ActivateRevision,
    Pause,
    Promote,
    Restart,
    Resume,
    Retry,
    RollingUpdate,
    Undo,
)
from domain.steering.activation import Activation
from domain.steering.rollout_history import AlreadyUndoneError
from domain.text.errors import DeploymentNotFoundError, InvalidInputError, WrongStateError
from domain.text.numbers import number_of
from stack.home.folder import find_home
from stack.stack_status import stack_status

if TYPE_CHECKING:
    from typer._click import Context


_ACTIVATED = {
    Activation.FIRST: "{revision} is the first revision of {deployment}",
    Activation.BEGUN: "rollout of {deployment} to {revision} started",
    Activation.RESUMED: "{deployment} is already rolling out {revision}",
    Activation.SUPERSEDED: "rollout of {deployment} to {revision} started, leaving the one before",
    Activation.MOVED: "{deployment} changes to {revision} without a rollout, since it has no policy",
    Activation.CONVERGING: "{deployment} is already changing to {revision}",
    Activation.ALREADY_ACTIVE: "{revision} is already active in {deployment}; nothing to do",
}


def _activated(result: Result) -> str:
    return _ACTIVATED[Activation(result["activation"])].format(**result)


def _aborted(result: Result) -> str:
    meanwhile = f"; {result['answering']}" if result.get("answering") else ""
    return f"{result['deployment']} is going back{_already(result)}{meanwhile}"


def _undone(result: Result) -> str:
    stays = "".join(f"\nset by itself, and left as it is: {setting}" for setting in result.get("stays", ()))
    return f"{_gone_where(result)}{stays}"


def _gone_where(result: Result) -> str:
    settings = "; ".join(result.get("settings", ()))
    if settings and result["rollout_id"] is None:
        return f"{result['deployment']} keeps its revision, and has the settings of before: {settings}"
    return f"{_revision_back(result)}{settings and f', with its settings: {settings}'}"


def _revision_back(result: Result) -> str:
    match result.get("activation"):
        case None:
            return _aborted(result)
        case Activation.BEGUN | Activation.SUPERSEDED:
            return f"{result['deployment']} goes back to {result['revision']}"
        case _:
            return _activated(result)


def _retried(result: Result) -> str:
    if result.get("activation"):
        return _activated(result)
    if result["already"]:
        return f"nothing of {result['deployment']} waits for its next try"
    forgotten = number_of(result["forgotten"], "failed start")
    return f"{result['deployment']} is tried again now; {forgotten} forgotten"


def _restarted(result: Result) -> str:
    return f"{result['deployment']} restarts as {result['revision']}"


def _scaled(result: Result) -> str:
    if result["from"] == result["to"]:
        return f"{result['deployment']} has {result['to']} replicas wanted already"
    rules = "".join(f"\nits autoscaling rule may change that: {rule}" for rule in result.get("rules", ()))
    return f"{result['deployment']} scaled from {result['from']} to {result['to']} replicas{rules}"


def _already(result: Result) -> str:
    return " already" if result["already"] else ""


def _is_tired(view: DeploymentView) -> bool:
    return bool(view.failed_starts or view.degraded_reason or view.retry_at)


def _is_under_way(view: DeploymentView) -> bool:
    return view.rollout_id is not None and view.paused_at is None


def _is_paused(view: DeploymentView) -> bool:
    return view.paused_at is not None


RESTART = Verb(Restart, _restarted, rollout_completed)
"""The half of `rollway restart` that is about a deployment."""

VERBS: Mapping[str, Verb] = {
    "activate": Verb(ActivateRevision, _activated, rollout_completed, called={"desired_replicas": "--replicas"}),
    "pause": Verb(
        Pause,
        lambda result: f"{result['deployment']} is paused{_already(result)}",
        of_all=OfAll("every rollout under way", _is_under_way),
    ),
    "resume": Verb(
        Resume,
        lambda result: f"{result['deployment']} continues",
        rollout_completed,
        of_all=OfAll("every paused rollout", _is_paused),
    ),
    "promote": Verb(
        Promote,
        lambda result: f"{result['deployment']} is promoted as soon as its new replicas are healthy",
        rollout_completed,
    ),
    "abort": Verb(Abort, _aborted, settled),
    "undo": Verb(Undo, _undone, gone_back, called={"revision": "--to"}),
    "retry": Verb(
        Retry,
        _retried,
        rollout_completed,
        of_all=OfAll("every deployment with failed starts", _is_tired, {"now": True}),
    ),
    "scale": Verb(Scale, _scaled, settled),
    "destroy": Verb(
        Destroy,
        lambda result: f"{result['deployment']} is being destroyed{_already(result)}",
        destroyed,
        question="Destroy {deployment} and its {replicas} replicas?",
    ),
}
"""The verbs with more than their class: the result in words, the goal of --wait, the meaning of --all, a question."""


_Page = Annotated[
    str | None,
    typer.Option("--page", metavar="FILE", help="The HTML that callers get; - for standard input.", show_default=False),
]


@sends(SetMaintenance)
def maintenance(asker: Asker, *, deployment: DeploymentName, page: _Page = None, **fields: object) -> None:
    """Turn maintenance mode (503) on or off: proxies answer callers. Previews are still reached, and rollouts continue.

    Requests with the header of --allow get through: its name, or its name and its value as 'name: value'.
    """
    extra = {} if page is None else {"page": _page_content(page)}
    result = asker.send(SetMaintenance, deployment=deployment, **extra, **fields)
    asker.say(_sentence(result), result)


def _page_content(page: str) -> str:
    """Raises InvalidInputError."""
    try:
        return text_of(page)
    except OSError as error:
        raise InvalidInputError(f"--page: {page}: cannot be read: {error.strerror}", field="--page") from None
    except ValueError as error:
        raise InvalidInputError(f"--page: {page}: {error}", field="--page") from None


def _sentence(result: Result) -> str:
    already = " already" if result["already"] else ""
    if result["state"] == "off":
        return f"{result['deployment']} is not in maintenance{already or ' any more'}"
    return f"{result['deployment']} is in maintenance{already}: callers get 503 until 'off'"


_Deployment = Annotated[
    str | None,
    typer.Argument(
        metavar="[DEPLOYMENT]",
        help="Name of the deployment.",
        show_default="the stack itself",
        autocompletion=deployments_offered,
    ),
]


@asking
def restart(
    *,
    deployment: _Deployment = None,
    parts: Annotated[
        list[str] | None,
        typer.Option("--part", metavar="PART", help="Of the stack, as 'up' names it.", show_default="all but Envoy"),
    ] = None,
    through_freeze: ThroughFreeze = False,
    wait: Wait = False,
    timeout: Timeout = WAIT_SECONDS,
    asker: Asker,
) -> None:
    """Restart a deployment, or the servers and workers here. Neither loses a request.

    A deployment rolls the same revision again, called v3.r2 after v3, with its policy and budgets: for a secret or a
    file that its replicas read when they start. 'rollway undo' passes it by, as nothing but the replicas is new.

    Without a name the parts of this machine's stack are restarted one after the other, while replicas and Envoy keep
    serving. After it new code runs, for an upgrade; migrations come first. Envoy is left alone unless its
    configuration has changed or it is named with --part. When a part does not come up again, those after it run on as
    they are.
    """
    if deployment is None:
        if wait:
            raise UsageError("--wait waits for a deployment: name it; the stack's restart returns when all is up")
        return restart_parts(parts or (), as_json=asker.as_json)
    if parts:
        raise UsageError(f"--part is for the stack: leave it out to restart {deployment}, or leave {deployment} out")
    try:
        carry_out(RESTART, asker, deployment=deployment, through_freeze=through_freeze, wait=wait, timeout=timeout)
    except DeploymentNotFoundError as error:
        if deployment not in {part.name for part in stack_status(find_home(os.environ)).parts}:
            raise
        message = f"there is no deployment called {deployment}; 'rollway restart --part {deployment}' is for the stack"
        raise DeploymentNotFoundError(message, deployment=deployment) from error


_VERB = replace(VERBS["activate"], command=RollingUpdate)


@asking
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
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the end, and show each step.")] = True,
    timeout: Timeout = WAIT_SECONDS,
    asker: Asker,
) -> None:
    """Roll out the current revision with another image or command; with NEXT alone, an existing revision.

    Everything else is as in the current revision. A NEXT that is not given is named by its content, so that the same
    line repeated, after a crash or Ctrl-C, continues its rollout instead of beginning a second one, and has
    nothing to do once it is completed. Neither NEXT nor a change: the rollout that is under way.

    With --rollback a rollout under way turns back, and a completed one is undone.
    """
    how: dict[str, Any] = {"wait": wait, "timeout": timeout}
    command = behind_dashes(context)
    if rollback:
        if image is not None or command:
            raise UsageError("--rollback goes back to what ran before: leave out --image and the command")
        with Reader() as reader:
            _refuse_stranger(deployment_named(reader, deployment), revision)
        return _roll_back(asker, deployment, how)
    change: dict[str, Any] = {"revision": revision, "image": image, "command": command, "supersede": supersede}
    return carry_out(_VERB, asker, deployment=deployment, **change, **how)


def _refuse_stranger(view: DeploymentView, revision: str | None) -> None:
    """Raises WrongStateError where NEXT neither runs nor is on its way, so that nothing of it turns back."""
    if revision in (None, view.deploying_revision, view.current_revision):
        return
    runs = view.deploying_revision or view.current_revision
    message = f"{view.name} does not go to {revision} and does not run it, but {runs}; 'rollway history' shows why"
    raise WrongStateError(message, deployment=view.name, state=view.state)


def _roll_back(asker: Asker, deployment: str, how: dict[str, Any]) -> None:
    """Asked a second time, it keeps waiting; once the rollback is done it does nothing."""
    try:
        carry_out(VERBS["undo"], asker, deployment=deployment, revision=None, **how)
    except AlreadyUndoneError as error:
        printer(quiet=asker.as_json).print(f"{error.message.partition(';')[0]}; nothing to do")
        if asker.as_json:
            print_json({"deployment": deployment, "already": True})


_KEPT = "rollway.behind_dashes"


class TakesCommand(TyperCommand):
    """A command that takes another command after `--`, however many arguments come before it."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Parse only the words before the first `--`."""
        place = args.index("--") if "--" in args else len(args)
        ctx.meta[_KEPT] = tuple(args[place + 1 :])
        return super().parse_args(ctx, args[:place])

    def collect_usage_pieces(self, ctx: "Context") -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


def behind_dashes(context: typer.Context) -> tuple[str, ...]:
    """The words after `--`; empty where it was left out."""
    rest: Any = context.meta.get(_KEPT, ())
    return tuple(rest)


rolling_update.command_class = TakesCommand  # type: ignore[attr-defined]  # functions have what one gives them
