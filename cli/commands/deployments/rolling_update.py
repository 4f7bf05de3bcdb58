"""`rollway rolling-update`: what runs, with another image or command, as one rollout."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from cli.commands.deployments.change import VERBS
from cli.completing import revisions_offered
from cli.options import WAIT_SECONDS, DeploymentName, Supersede, Timeout
from cli.reads import deployment_named
from cli.sending import Asker, asking, carry_out
from cli.servers import Reader
from cli.terminal.exits import UsageError
from cli.terminal.output import print_json, printer
from db.views.deployment_view import DeploymentView
from domain.commands.rollout import RollingUpdate
from domain.steering.past import AlreadyUndoneError
from domain.words.errors import WrongStateError

if TYPE_CHECKING:
    from typer._click import Context


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
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it has happened, and show how.")] = True,
    timeout: Timeout = WAIT_SECONDS,
    asker: Asker,
) -> None:
    """Roll out what runs with another image or command. With NEXT alone: a revision that exists.

    Everything else is as in the current revision. A NEXT that is not given is named by its content, so that the same
    line asked again, after a crash or Ctrl-C, goes on with its rollout instead of beginning a second one, and has
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
    """Raises WrongStateError where NEXT is given and neither runs nor is on its way, so nothing of it turns back."""
    if revision in (None, view.deploying_revision, view.current_revision):
        return
    runs = view.deploying_revision or view.current_revision
    message = f"{view.name} does not go to {revision} and does not run it, but {runs}; 'rollway history' shows why"
    raise WrongStateError(message, deployment=view.name, state=view.state)


def _roll_back(asker: Asker, deployment: str, how: dict[str, Any]) -> None:
    """Asker again, it goes on waiting, and has nothing to do when it is back."""
    try:
        carry_out(VERBS["undo"], asker, deployment=deployment, revision=None, **how)
    except AlreadyUndoneError as error:
        printer(quiet=asker.as_json).print(f"{error.message.partition(';')[0]}; nothing to do")
        if asker.as_json:
            print_json({"deployment": deployment, "already": True})


_KEPT = "rollway.behind_dashes"


class TakesCommand(TyperCommand):
    """A command that takes another command behind `--`, however many arguments stand before it."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Only what stands before the first `--` is read here."""
        place = args.index("--") if "--" in args else len(args)
        ctx.meta[_KEPT] = tuple(args[place + 1 :])
        return super().parse_args(ctx, args[:place])

    def collect_usage_pieces(self, ctx: "Context") -> list[str]:
        """As the help shows it."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


def behind_dashes(context: typer.Context) -> tuple[str, ...]:
    """The words behind `--`; none of them where it was left out."""
    kept: Any = context.meta.get(_KEPT, ())
    return tuple(kept)


rolling_update.command_class = TakesCommand  # type: ignore[attr-defined]  # functions have what one gives them
