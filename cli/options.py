"""Arguments and options that several commands share."""

import getpass
import os
from typing import Annotated
from uuid import uuid4

import typer

from cli.completion import deployments_offered


def os_user() -> str:
    """The user name of the caller; a number where the system knows no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def new_request_id() -> str:
    return str(uuid4())


DeploymentName = Annotated[
    str,
    typer.Argument(
        metavar="DEPLOYMENT",
        help="Name of the deployment.",
        show_default=False,
        autocompletion=deployments_offered,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the history.", show_default=False)]
Actor = Annotated[
    str,
    typer.Option(
        "--actor", default_factory=os_user, help="Name recorded in the history.", show_default="your user name"
    ),
]
RequestId = Annotated[
    str,
    typer.Option(
        "--request-id",
        metavar="ID",
        default_factory=new_request_id,
        help="A second request with the same id does nothing.",
        show_default="a new one",
    ),
]
Supersede = Annotated[bool, typer.Option("--supersede", help="Leave a rollout to another revision.")]
ThroughFreeze = Annotated[bool, typer.Option("--through-freeze", help="Ignore a freeze; needs a --reason.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for the end, and show each step.")]
Timeout = Annotated[
    float, typer.Option("--timeout", min=0, metavar="SECONDS", help="How long --wait waits; exit code 4 or 6 after it.")
]
WAIT_SECONDS = 600.0
