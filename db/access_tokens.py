"""Tokens of the HTTP API, and sessions of the page: made, found by the hash of what is shown, and ended."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, LiteralString

from psycopg import Connection
from psycopg.rows import DictRow, dict_row

from db.fleet_history import record_deed
from domain.installation.tokens import (
    NewToken,
    NoTokenError,
    Role,
    Session,
    SessionEnd,
    Token,
    TokenExistsError,
    TokenNotFoundError,
)
from domain.text.numbers import number_of

_COLUMNS = "name, role, deployments, created_by, created_at, expires_at, last_used_at"

_INSERT = f"""
    INSERT INTO tokens (name, hash, role, deployments, created_by, expires_at)
    VALUES (%s, %s, %s, %s, %s, clock_timestamp() + %s::interval)
    ON CONFLICT (name) DO NOTHING RETURNING {_COLUMNS}
"""

_VALID = f"SELECT {_COLUMNS} FROM tokens WHERE hash = %s AND (expires_at IS NULL OR expires_at > clock_timestamp())"

_OF_SESSION = """
    SELECT name, role, deployments, created_by, created_at, expires_at, sessions.last_used_at
      FROM tokens JOIN sessions ON token = name
     WHERE sessions.hash = %s AND ends_at > clock_timestamp() AND (expires_at IS NULL OR expires_at > clock_timestamp())
"""

_MAKE_ROOM = """
    DELETE FROM sessions
     WHERE ends_at < clock_timestamp()
        OR hash IN (SELECT hash FROM sessions WHERE token = %s ORDER BY ends_at DESC OFFSET %s)
"""

_ID_DIGITS = 12
_SESSIONS = f"""
    SELECT left(encode(hash, 'hex'), {_ID_DIGITS}), token, ends_at - %(lasts)s::interval, ends_at, last_used_at,
           coalesce(address, ''), coalesce(browser, '')
      FROM sessions
     WHERE (%(token)s::text IS NULL OR token = %(token)s) AND ends_at > clock_timestamp() ORDER BY ends_at DESC, hash
"""
_END = "DELETE FROM sessions WHERE token = %s AND starts_with(encode(hash, 'hex'), %s)"

_STILL_VALID = """
    SELECT name, NULL AS session FROM tokens
     WHERE name = ANY(%(names)s) AND (expires_at IS NULL OR expires_at > clock_timestamp())
     UNION ALL SELECT NULL, hash FROM sessions WHERE hash = ANY(%(sessions)s) AND ends_at > clock_timestamp()
"""

_USED = """
    UPDATE tokens SET last_used_at = clock_timestamp()
     WHERE name = %s AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute')
"""
"""A use is noted once a minute at most, so that a polling client does not write a row each time."""

_SESSION_USED = """
    UPDATE sessions SET last_used_at = clock_timestamp()
     WHERE hash = %s AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute')
"""

_BEGIN = """
    INSERT INTO sessions (hash, token, ends_at, address, browser, last_used_at)
    VALUES (%(hash)s, %(token)s, clock_timestamp() + %(lasts)s, %(address)s, %(browser)s, clock_timestamp())
"""

_NEW_LINK = """
    WITH forgotten AS (DELETE FROM login_links WHERE ends_at < clock_timestamp() - interval '1 day')
    INSERT INTO login_links (hash, token, ends_at) VALUES (%s, %s, clock_timestamp() + %s) RETURNING ends_at
"""

_USE_LINK = f"""
    UPDATE login_links l SET used_at = clock_timestamp() FROM tokens
     WHERE l.hash = %s AND l.used_at IS NULL AND l.ends_at > clock_timestamp() AND name = l.token
       AND (expires_at IS NULL OR expires_at > clock_timestamp())
    RETURNING {_COLUMNS}
"""

# a token that was made again under the same name is another one
_WHOSE = """
    SELECT h.created_at + %(lasts)s < clock_timestamp(), t.name IS NULL OR t.expires_at <= clock_timestamp()
      FROM fleet_history h LEFT JOIN tokens t ON t.name = h.actor AND t.created_at <= h.created_at
     WHERE h.phase = 'log_in' AND h.target = %(session)s ORDER BY h.created_at DESC LIMIT 1
"""


SESSION_LASTS = timedelta(days=7)
LINK_LASTS = timedelta(minutes=1)
_MOST_SESSIONS = 100


def hash_of(secret: str) -> bytes:
    """The hash that is stored. The secret is 256 random bits: no guess finds it, so a slow hash gains nothing."""
    return sha256(secret.encode()).digest()


def create_token(connection: Connection, new: NewToken, secret: str) -> Token:
    """Keep a new token by the hash of its secret. Raises TokenExistsError."""
    days = None if new.days is None else timedelta(days=new.days)
    values = (new.name, hash_of(secret), new.role, list(new.deployments), new.actor, days)
    row = connection.cursor(row_factory=dict_row).execute(_INSERT, values).fetchone()
    if row is None:
        message = f"a token called {new.name} exists; take another name, or 'rollway token revoke {new.name}' first"
        raise TokenExistsError(message, token=new.name)
    token = _token(row)
    ends = f", until {token.expires_at:%Y-%m-%d}" if token.expires_at else ""
    sentence = f"token {token.name}: {token.role} for {', '.join(token.deployments) or 'all deployments'}{ends}"
    record_deed(connection, "create_token", token.name, new.actor, sentence)
    return token


def token_shown(connection: Connection[Any], secret: str) -> Token | None:
    """The token that this is the secret of, unless it is revoked or has expired."""
    return _find(connection, _VALID, secret)


def begin_session(connection: Connection, secret: str, token: Token, address: str = "", browser: str = "") -> None:
    """Open a session for this token. Beyond the limit its oldest sessions end."""
    connection.execute(_MAKE_ROOM, (token.name, _MOST_SESSIONS - 1))
    where = ", ".join(filter(None, (address, browser)))
    values = {"token": token.name, "lasts": SESSION_LASTS, "address": address, "browser": browser}
    connection.execute(_BEGIN, {**values, "hash": hash_of(secret)})
    message = f"logged in to the page{f' from {where}' if where else ''}"
    record_deed(connection, "log_in", session_id(secret), token.name, message)


def session_shown(connection: Connection[Any], secret: str) -> Token | None:
    """The token of the session that this is the secret of, unless the session is over, or the token no longer valid.

    Its last use is that of the session.
    """
    return _find(connection, _OF_SESSION, secret)


def end_session(connection: Connection, secret: str) -> None:
    """Log out who shows this secret."""
    query = "DELETE FROM sessions WHERE hash = %s RETURNING token"
    for (token,) in connection.execute(query, (hash_of(secret),)).fetchall():
        record_deed(connection, "log_out", session_id(secret), token, "logged out of the page")


def why_over(connection: Connection[Any], secret: str) -> SessionEnd | None:
    """Why the session that this was the secret of is over; None where no session of it is on record."""
    row = connection.execute(_WHOSE, {"session": session_id(secret), "lasts": SESSION_LASTS}).fetchone()
    match row:
        case None:
            return None
        case (True, _):
            return SessionEnd.AGE
        case (_, True):
            return SessionEnd.TOKEN
    return SessionEnd.ENDED


def sessions_of(connection: Connection[Any], token: str | None) -> list[Session]:
    """The sessions that are not over, the newest first; None: of all tokens."""
    return [Session(*row) for row in connection.execute(_SESSIONS, {"token": token, "lasts": SESSION_LASTS})]


def end_sessions(connection: Connection, token: str, actor: str, session_id: str = "") -> int:
    """End the sessions of a token whose ids begin so; returns how many they were. The token stays valid."""
    ended = connection.execute(_END, (token, session_id)).rowcount
    if ended:
        message = f"{number_of(ended, 'session')} of {token} ended"
        record_deed(connection, "end_sessions", session_id or token, actor, message)
    return ended


def session_id(secret: str) -> str:
    return hash_of(secret).hex()[:_ID_DIGITS]


def make_login_link(connection: Connection[Any], token: str, secret: str) -> datetime:
    """Keep a link that logs in once with this token, by the hash of its secret; returns its end."""
    row = connection.execute(_NEW_LINK, (hash_of(secret), token, LINK_LASTS)).fetchone()
    assert row is not None  # noqa: S101  (an INSERT without a condition returns its row)
    ends_at: datetime = row[0]
    return ends_at


def use_login_link(connection: Connection[Any], secret: str) -> Token | None:
    """The token of the link, which is used up by that; None for a secret of no link.

    Raises NoTokenError for a link that was used before, or whose minute is over.
    """
    token = _find(connection, _USE_LINK, secret)
    if token is not None:
        return token
    query = "SELECT used_at, ends_at > clock_timestamp() FROM login_links WHERE hash = %s"
    row = connection.execute(query, (hash_of(secret),)).fetchone()
    if row is None:
        return None
    why = why_spent(row, "a minute") or "is of a token that has expired"
    raise NoTokenError(f"this link {why}; 'rollway open' makes another")


def why_spent(row: tuple[Any, ...], lasts: str, by: str = "") -> str:
    """Why a secret of one use is good no more; empty while it is. `row`: its `used_at`, and whether its time lasts."""
    match row:
        case (None, True):
            return ""
        case (None, _):
            return f"was good for {lasts}, which is over"
    return f"has been used already{by}"


def note_use(connection: Connection, token: Token, secret: str = "") -> None:
    """The token was shown just now, or the session of it that this is the secret of."""
    connection.execute(_USED, (token.name,))
    connection.execute(_SESSION_USED, (hash_of(secret),))


def still_valid(
    connection: Connection[Any], names: Sequence[str], sessions: Sequence[bytes] = ()
) -> frozenset[str | bytes]:
    """The names of valid tokens, neither revoked nor expired, and the hashes of valid sessions, among these."""
    rows = connection.execute(_STILL_VALID, {"names": list(names), "sessions": list(sessions)})
    return frozenset(name or session for name, session in rows)


def all_tokens(connection: Connection[Any]) -> list[Token]:
    """The tokens by name, including expired ones."""
    cursor = connection.cursor(row_factory=dict_row)
    return [_token(row) for row in cursor.execute(f"SELECT {_COLUMNS} FROM tokens ORDER BY name")]


def revoke_token(connection: Connection, name: str, actor: str) -> None:
    """Forget it: from now on it is refused. Raises TokenNotFoundError."""
    if not connection.execute("DELETE FROM tokens WHERE name = %s", (name,)).rowcount:
        message = f"there is no token called {name}; 'rollway token list' shows those that exist"
        raise TokenNotFoundError(message, token=name)
    record_deed(connection, "revoke_token", name, actor, f"token {name} is revoked")


def _find(connection: Connection[Any], statement: LiteralString, secret: str) -> Token | None:
    row = connection.cursor(row_factory=dict_row).execute(statement, (hash_of(secret),)).fetchone()
    return _token(row) if row else None


def _token(row: DictRow) -> Token:
    return Token(**{**row, "role": Role(row["role"]), "deployments": tuple(row["deployments"])})
