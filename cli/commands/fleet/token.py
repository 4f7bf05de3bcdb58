"""`rollway token create`, `list` and `revoke`: access over HTTP."""

import secrets
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, TypeVar

import typer
from psycopg import Connection
from pydantic import ValidationError

from cli.client import Reader, database_errors, find_servers, signs_of_life
from cli.options import Actor, AsJson
from cli.terminal.exits import READING, WRITING, UsageError, exits
from cli.terminal.output import ago, columns, print_json, printer
from db.access_tokens import all_tokens, create_token, end_sessions, revoke_token, sessions_of
from domain.installation.tokens import SECRET_BYTES, SECRET_PREFIX, USUAL_DAYS, NewToken, Role, Token
from domain.text.errors import InvalidInputError
from domain.text.numbers import number_of

T = TypeVar("T")
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
    """Show the tokens there are, and when each was used last."""
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


def _may(token: Token) -> str:
    scope = f"for {', '.join(token.deployments)}" if token.deployments else "for all deployments"
    return f"an {token.role} {scope}" if token.may(Role.OPERATOR) else f"a {token.role} {scope}"


def _write(work: Callable[[Connection], T]) -> T:
    from db.connection.transactions import engine, in_transaction  # noqa: PLC0415  (SQLAlchemy takes half a second)

    find_servers()
    with database_errors():
        return in_transaction(engine(), work)
