"""`rollway maintenance`: callers are answered by proxies while a deployment is worked on."""

from typing import Annotated

import typer

from cli.apply.file import text_of
from cli.options import DeploymentName
from cli.sending import Asker, Result
from cli.subcommands import sends
from domain.commands.deployment import SetMaintenance
from domain.words.errors import InvalidInputError

_Page = Annotated[
    str | None,
    typer.Option("--page", metavar="FILE", help="The HTML that callers get; - for standard input.", show_default=False),
]


@sends(SetMaintenance)
def maintenance(asker: Asker, *, deployment: DeploymentName, page: _Page = None, **said: object) -> None:
    """Answer callers by 503, or no longer: proxies do it themselves. Previews are still reached, and rollouts go on.

    Who sends the header of --allow gets through: its name, or its name and its value as 'name: value'.
    """
    given = {} if page is None else {"page": _read(page)}
    result = asker.send(SetMaintenance, deployment=deployment, **given, **said)
    asker.say(_sentence(result), result)


def _read(page: str) -> str:
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
