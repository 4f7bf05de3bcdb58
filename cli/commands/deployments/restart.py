"""`rollway restart`: a deployment once more, or the parts of this machine's stack."""

import os
from typing import Annotated

import typer

from cli.commands.deployments.change import RESTART
from cli.commands.machine.stack import restart_parts
from cli.completing import deployments_offered
from cli.options import WAIT_SECONDS, ThroughFreeze, Timeout, Wait
from cli.sending import Asker, asking, carry_out
from cli.terminal.exits import UsageError
from domain.words.errors import DeploymentNotFoundError
from stack.home.folder import find_home
from stack.status import stack_status

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

    Without a name the parts of this machine's stack are restarted one after the other, while replicas and Envoy go on
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
