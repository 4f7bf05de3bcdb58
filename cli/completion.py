"""Offers the names of deployments and revisions, at Tab and for a typo: quickly, and none where no server answers.

From the database, or from the server that ROLLWAY_URL names.

What is imported inside of functions is needed at a Tab only.
"""

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, LiteralString
from urllib.parse import quote

import typer

from cli.remote import Remote, remote
from domain.text.errors import DeploymentNotFoundError, RevisionNotFoundError, RollwayError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

_MOST = 200
_PATIENCE_SECONDS = 2

_DEPLOYMENTS = """
    SELECT name, lifecycle FROM deployments
     WHERE lifecycle <> 'destroyed' AND starts_with(name, %(begun)s) ORDER BY name LIMIT %(most)s
"""

_REVISIONS = """
    SELECT v.name, to_char(v.created_at, 'YYYY-MM-DD HH24:MI')
      FROM revisions v JOIN deployments d ON d.id = v.deployment_id
     WHERE d.lifecycle <> 'destroyed' AND d.name = %(deployment)s AND starts_with(v.name, %(begun)s)
     ORDER BY v.id DESC LIMIT %(most)s
"""

Offered = list[tuple[str, str]]
"""Names, each with what a shell shows next to it."""


def deployments_offered(incomplete: str) -> Offered:
    """The deployments whose names begin with this."""
    return _query("/v1/deployments", _DEPLOYMENTS, {"begun": incomplete})


def revisions_offered(ctx: typer.Context, incomplete: str) -> Offered:
    """The revisions of the command's deployment whose names begin with this, the newest first."""
    deployment = ctx.params.get("deployment") or _typed_behind_the_command()
    path = f"/v1/deployments/{quote(deployment, '')}/revisions"
    return _query(path, _REVISIONS, {"begun": incomplete, "deployment": deployment})


def with_name_meant(error: RollwayError) -> RollwayError:
    """The refusal of an unknown name, with a similar one, where there is one."""
    import difflib  # noqa: PLC0415

    deployment, revision = str(error.detail.get("deployment", "")), str(error.detail.get("revision", ""))
    match error:
        case DeploymentNotFoundError():
            typed, names = deployment, [*deployments_offered(deployment[:1]), *deployments_offered("")]
        case RevisionNotFoundError():
            path = f"/v1/deployments/{quote(deployment, '')}/revisions"
            typed, names = revision, _query(path, _REVISIONS, {"begun": "", "deployment": deployment})
        case _:
            return error
    close = difflib.get_close_matches(typed, [name for name, _ in names if name != typed], 1)
    return type(error)(f"{error.message}; did you mean {close[0]}?", **error.detail) if close else error


def _typed_behind_the_command() -> str:
    """The deployment on the line: Typer reads no arguments before an option whose value is still to come."""
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    return "".join(line.split()[2:3])


def _query(path: str, query: LiteralString, arguments: dict[str, Any]) -> Offered:
    """The names; none when anything goes wrong: a message would land in the middle of the line."""
    try:
        if (server := remote(_PATIENCE_SECONDS)) is not None:
            return _over_http(server, path, arguments["begun"])
        with _connection() as connection:
            return connection.execute(query, {**arguments, "most": _MOST}).fetchall()
    except Exception:  # noqa: BLE001  (whatever it is, the command itself will say it)
        return []


def _over_http(server: Remote, path: str, prefix: str) -> Offered:
    items = server.get(path, prefix=prefix, limit=_MOST)["items"]
    return [(item["name"], item.get("lifecycle") or f"{item['created_at']:.16}".replace("T", " ")) for item in items]


@contextmanager
def _connection() -> "Iterator[Connection[Any]]":
    import psycopg  # noqa: PLC0415

    from domain.installation.settings import libpq_url  # noqa: PLC0415
    from stack.stack_status import export_urls  # noqa: PLC0415

    export_urls(os.environ)
    patience = f"-c statement_timeout={_PATIENCE_SECONDS}s"
    url = libpq_url(os.environ["DATABASE_URL"])
    with psycopg.connect(url, autocommit=True, connect_timeout=_PATIENCE_SECONDS, options=patience) as connection:
        yield connection
