"""`rollway token create`, `list` and `revoke`, and `rollway open`: access over HTTP."""

import os
import re
import secrets
import sys
import webbrowser
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated, TypeVar

import typer
from psycopg import Connection
from pydantic import ValidationError

from cli.client import Reader, database_errors, find_servers, signs_of_life
from cli.options import Actor, AsJson, os_user
from cli.remote import URL, remote
from cli.show.urls import page_address
from cli.terminal.exits import READING, WRITING, UnreachableError, UsageError, exits
from cli.terminal.output import ago, columns, print_json, printer
from db.access_tokens import (
    SESSION_LASTS,
    all_tokens,
    create_token,
    end_sessions,
    make_login_link,
    revoke_token,
    sessions_of,
)
from domain.installation.tokens import (
    SECRET_BYTES,
    SECRET_PREFIX,
    USUAL_DAYS,
    NewToken,
    Role,
    Token,
    TokenNotFoundError,
    login_path,
)
from domain.text.errors import InvalidInputError
from domain.text.numbers import number_of

T = TypeVar("T")
_GOOD_FOR = "This address logs in once, within a minute:"
_Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the token.", show_default=False)]
_Role = Annotated[Role, typer.Option("--role", help="What its bearer may do.")]
_Deployment = Annotated[
    list[str] | None, typer.Option("--deployment", metavar="NAME", help="Only this one; may be repeated.")
]
_USUALLY = f"{USUAL_DAYS:g}; an admin's has no end"
_Days = Annotated[float | None, typer.Option("--days", help="After which it is refused.", show_default=_USUALLY)]
_Session = Annotated[str, typer.Option("--session", metavar="ID", help="Only this one; its first digits are enough.")]
_Forever = Annotated[bool, typer.Option("--forever", help="It never expires.")]

_token = typer.Typer(
    help="Make, list and revoke tokens of the HTTP API.",
    epilog=exits(*WRITING, example="rollway token create me --role admin\nrollway token list\nrollway token revoke me"),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
GROUPS = {"token": _token}


@_token.command(
    epilog=exits(
        *WRITING,
        example="rollway token create ci --role releaser --deployment web\nrollway token create me --role admin",
    )
)
def create(
    *,
    name: _Name,
    role: _Role = Role.VIEWER,
    deployment: _Deployment = None,
    days: _Days = None,
    forever: _Forever = False,
    actor: Actor,
    as_json: AsJson = False,
) -> None:
    """Make a token, and show it once: only its hash is kept.

    A viewer reads. A releaser activates revisions that exist, steers rollouts and scales. An operator also adds
    revisions, and reads what replicas print. An admin also creates and destroys, and sets policies, traffic,
    autoscaling and subscriptions. What the bearer does is noted as done by NAME.

    Adding a revision means choosing what runs: where replicas run as the workers' own user, such a program can read
    what the workers read, and so whatever an admin can. With --deployment it cannot: what such a token adds runs only
    where ROLLWAY_REPLICA_USER keeps replicas apart. A releaser adds nothing.
    """
    if forever and days is not None:
        raise UsageError("--forever and --days do not go together")
    if days is None and not forever:
        days = role.usual_days
    try:
        new = NewToken(name=name, role=role, deployments=tuple(deployment or ()), days=days, actor=actor)
    except ValidationError as error:
        raise InvalidInputError.of(error, model=NewToken) from None
    secret = SECRET_PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    token = _write(lambda connection: create_token(connection, new, secret))
    if as_json:
        return print_json({**asdict(token), "token": secret})
    console = printer(stderr=True)
    if token.may(Role.OPERATOR) and token.is_for_all:
        console.print("! what it lets run reaches what the workers' user reaches: --help says more", style="yellow")
    elif token.may(Role.OPERATOR):
        console.print("! what it adds runs only on hosts with ROLLWAY_REPLICA_USER, as that user", style="yellow")
    ends = (
        f"It ends on {token.expires_at:%Y-%m-%d}."
        if token.expires_at
        else "It never expires; use --days to set an expiry."
    )
    console.print(f"{name} is {_may(token)}. {ends} The token is shown this once:")
    return typer.echo(secret)


@_token.command("list", epilog=exits(*READING, example="rollway token list"))
def list_tokens(*, as_json: AsJson = False) -> None:
    """Show the tokens, and when each was used last."""
    with Reader() as reader:
        rows, now = reader.look(all_tokens), signs_of_life(reader).now
    if as_json:
        return print_json(rows)
    if not rows:
        return printer().print("No token yet; 'rollway token create me --role admin' makes one.")
    table = columns("NAME", "ROLE", "USED", "MADE", "EXPIRES", "FOR")
    for token in rows:
        used = ago(token.last_used_at, now) if token.last_used_at else "never"
        expires = token.expires_at.isoformat(" ", "minutes") if token.expires_at else "never"
        scope = ", ".join(token.deployments) or "all"
        table.add_row(
            token.name, token.role, used, f"{ago(token.created_at, now)} by {token.created_by}", expires, scope
        )
    return printer().print(table, soft_wrap=False)


@_token.command(epilog=exits(*WRITING, example="rollway token revoke ci"))
def revoke(*, name: _Name, actor: Actor, as_json: AsJson = False) -> None:
    """Revoke a token: the next request that shows it is refused, and its event streams end."""
    _write(lambda connection: revoke_token(connection, name, actor))
    if as_json:
        return print_json({"token": name, "revoked": True})
    return printer().print(f"{name} is revoked")


@_token.command(epilog=exits(*READING, example="rollway token sessions"))
def sessions(*, as_json: AsJson = False) -> None:
    """List the sessions of the page, with their beginning."""
    with Reader() as reader:
        rows, now = reader.look(lambda connection: sessions_of(connection, None)), signs_of_life(reader).now
    if as_json:
        return print_json(rows)
    if not rows:
        return printer().print("Nobody is logged in to the page.")
    table = columns("SESSION", "TOKEN", "BEGAN", "USED", "ENDS", "FROM")
    for session in rows:
        used = ago(session.last_used_at, now) if session.last_used_at else "-"
        place = ", ".join(filter(None, (session.address, session.browser))) or "-"
        ends = session.ends_at.isoformat(" ", "minutes")
        table.add_row(session.id, session.token, ago(session.began_at, now), used, ends, place)
    return printer().print(table, soft_wrap=False)


@_token.command(epilog=exits(*WRITING, example="rollway token log-out ann\nrollway token log-out ann --session 1f2e3d"))
def log_out(*, name: _Name, session: _Session = "", actor: Actor, as_json: AsJson = False) -> None:
    """Log the page out wherever it is logged in with this token, which stays valid."""
    ended = _write(lambda connection: end_sessions(connection, name, actor, session))
    if as_json:
        return print_json({"token": name, "ended": ended})
    return printer().print(f"{name}: {number_of(ended, 'session')} ended")


def open(  # noqa: A001  (the name of the command)
    *,
    whose: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="The token to log in as.", show_default="your user name")
    ] = None,
    only_print: Annotated[bool, typer.Option("--print", help="Print the address, and open no browser.")] = False,
    actor: Actor,
    as_json: AsJson = False,
) -> None:
    """Open the page, logged in.

    The printed address logs in once, within a minute, with the rights of a token: where ROLLWAY_URL is set, those of
    ROLLWAY_TOKEN. Without it those of --as; if no token has your user name, an admin's is made that ends with the
    session, and that nobody sees. A browser is opened where there is one.
    """
    server = remote()
    if server is not None and whose is not None:
        raise UsageError("--as is for the database: with ROLLWAY_URL the session is that of ROLLWAY_TOKEN")
    if server is not None:
        link = server.ask("POST", "/v1/login-links")
        url, ends_at = f"{os.environ[URL].rstrip('/')}{link['path']}", link["ends_at"]
    else:
        url, ends_at = _link_here(whose, actor)
    is_opened = not only_print and _has_browser() and webbrowser.open(url)
    if as_json:
        return print_json({"url": url, "ends_at": ends_at, "opened": is_opened})
    printer(stderr=True).print("The page is opened; this address logs in once:" if is_opened else _GOOD_FOR)
    return typer.echo(url)


def _link_here(whose: str | None, actor: str) -> tuple[str, str]:
    """A link to the page of this machine. `whose`: the token; None: that of the user, which is made where it lacks."""
    address, secret = page_address(), secrets.token_urlsafe(SECRET_BYTES)
    if not address:
        raise UnreachableError("the page does not run here; 'rollway up' starts it, or ROLLWAY_URL names another's")
    name = whose or re.sub(r"[^a-z0-9.-]", "-", os_user().lower())

    def make(connection: Connection) -> datetime:
        if name not in {token.name for token in all_tokens(connection)}:
            if whose is not None:
                raise TokenNotFoundError(f"there is no token {name}; 'rollway token list' lists those that exist")
            new = NewToken(name=name, role=Role.ADMIN, days=SESSION_LASTS / timedelta(days=1), actor=actor)
            create_token(connection, new, SECRET_PREFIX + secrets.token_urlsafe(SECRET_BYTES))
        return make_login_link(connection, name, secret)

    try:
        ends_at = _write(make)
    except ValidationError as error:
        raise InvalidInputError.of(error, model=NewToken) from None
    return address + login_path(secret), ends_at.isoformat()


def _has_browser() -> bool:
    """Whether a window can be opened here; a browser in the terminal would take it over."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _may(token: Token) -> str:
    scope = f"for {', '.join(token.deployments)}" if token.deployments else "for all deployments"
    return f"an {token.role} {scope}" if token.may(Role.OPERATOR) else f"a {token.role} {scope}"


def _write(work: Callable[[Connection], T]) -> T:
    from db.connection.transactions import engine, in_transaction  # noqa: PLC0415  (SQLAlchemy takes half a second)

    find_servers()
    with database_errors():
        return in_transaction(engine(), work)
