"""Tokens of the HTTP API: made, found by the hash of what is shown, listed and revoked."""

from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Any

from psycopg import Connection
from psycopg.rows import DictRow, dict_row

from domain.installation.tokens import NewToken, Role, Token, TokenExistsError, TokenNotFoundError

_COLUMNS = "name, role, deployments, created_by, created_at, expires_at, last_used_at"

_INSERT = f"""
    INSERT INTO tokens (name, hash, role, deployments, created_by, expires_at)
    VALUES (%s, %s, %s, %s, %s, clock_timestamp() + %s::interval)
    ON CONFLICT (name) DO NOTHING RETURNING {_COLUMNS}
"""

_VALID = f"SELECT {_COLUMNS} FROM tokens WHERE hash = %s AND (expires_at IS NULL OR expires_at > clock_timestamp())"

_STILL_VALID = """
    SELECT name FROM tokens
     WHERE name = ANY(%s) AND (expires_at IS NULL OR expires_at > clock_timestamp())
"""

_USED = """
    UPDATE tokens SET last_used_at = clock_timestamp()
     WHERE name = %s AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute')
"""
"""Once a minute: who polls writes no row each time."""


def hash_of(secret: str) -> bytes:
    """What is stored. The secret is 256 random bits, so nobody finds it by trying: a slow hash would gain nothing."""
    return sha256(secret.encode()).digest()


def create_token(connection: Connection, new: NewToken, secret: str) -> Token:
    """Keep a new token by the hash of its secret. Raises TokenExistsError."""
    days = None if new.days is None else timedelta(days=new.days)
    values = (new.name, hash_of(secret), new.role, list(new.deployments), new.actor, days)
    row = connection.cursor(row_factory=dict_row).execute(_INSERT, values).fetchone()
    if row is None:
        message = f"a token called {new.name} exists; take another name, or 'rollway token revoke {new.name}' first"
        raise TokenExistsError(message, token=new.name)
    return _token(row)


def token_shown(connection: Connection[Any], secret: str) -> Token | None:
    """The token that this is the secret of, unless it is revoked or has expired."""
    row = connection.cursor(row_factory=dict_row).execute(_VALID, (hash_of(secret),)).fetchone()
    return _token(row) if row else None


def note_use(connection: Connection, token: Token) -> None:
    """The token was shown just now."""
    connection.execute(_USED, (token.name,))


def still_valid(connection: Connection[Any], names: Sequence[str]) -> frozenset[str]:
    """The tokens of these that are neither revoked nor expired."""
    return frozenset(name for (name,) in connection.execute(_STILL_VALID, (list(names),)))


def all_tokens(connection: Connection[Any]) -> list[Token]:
    """All of them by name, those that have expired too."""
    cursor = connection.cursor(row_factory=dict_row)
    return [_token(row) for row in cursor.execute(f"SELECT {_COLUMNS} FROM tokens ORDER BY name")]


def revoke_token(connection: Connection, name: str) -> None:
    """Forget it: from now on it is refused. Raises TokenNotFoundError."""
    if not connection.execute("DELETE FROM tokens WHERE name = %s", (name,)).rowcount:
        message = f"there is no token called {name}; 'rollway token list' shows those that exist"
        raise TokenNotFoundError(message, token=name)


def _token(row: DictRow) -> Token:
    return Token(**{**row, "role": Role(row["role"]), "deployments": tuple(row["deployments"])})
