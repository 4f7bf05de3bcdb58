"""Tokens in Postgres: found by the hash of what is shown, refused once they are revoked or have expired."""

from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from db.access_tokens import (
    all_tokens,
    begin_session,
    create_token,
    end_session,
    end_sessions,
    hash_of,
    note_use,
    revoke_token,
    session_id,
    session_shown,
    still_valid,
    token_shown,
    why_over,
)
from db.connection.transactions import in_transaction
from domain.installation.tokens import NewToken, Role, SessionEnd, Token, TokenExistsError, TokenNotFoundError
from tests.support.rows.deployments import read, write
from tests.support.stack.waiting import eventually

_SOON = 1e-7
"""Days after which a token has expired when it is next looked at."""


def make(engine: Engine, name: str, *deployments: str, days: float | None = None) -> Token:
    """Its secret is its name."""
    new = NewToken(name=name, role=Role.OPERATOR, deployments=deployments, days=days, actor="bob")
    return in_transaction(engine, lambda connection: create_token(connection, new, name))


def shown(engine: Engine, secret: str) -> Token | None:
    return in_transaction(engine, lambda connection: token_shown(connection, secret))


def test_a_token_is_found_by_its_secret_of_which_only_the_hash_is_kept(engine: Engine) -> None:
    made = make(engine, "ann", "web", "shop", days=2)
    assert shown(engine, "ann") == made
    assert (made.role, made.deployments, made.created_by) == (Role.OPERATOR, ("web", "shop"), "bob")
    assert made.expires_at is not None
    assert made.expires_at - made.created_at == pytest.approx(timedelta(days=2), abs=timedelta(seconds=5))
    assert shown(engine, "guessed") is None
    (kept,) = read(engine, "SELECT hash FROM tokens")
    assert bytes(kept["hash"]) == hash_of("ann") != b"ann"


def test_a_name_is_given_once(engine: Engine) -> None:
    make(engine, "ann")
    with pytest.raises(TokenExistsError, match="'rollway token revoke ann' first"):
        make(engine, "ann")


def test_a_token_that_has_expired_is_listed_and_no_longer_valid(engine: Engine) -> None:
    make(engine, "zoe", days=_SOON)
    make(engine, "ann")
    eventually(lambda: shown(engine, "zoe") is None)
    assert in_transaction(engine, lambda connection: still_valid(connection, ["ann", "zoe", "nobody"])) == {"ann"}
    assert [token.name for token in in_transaction(engine, all_tokens)] == ["ann", "zoe"]


def test_a_revoked_token_is_forgotten_and_only_once(engine: Engine) -> None:
    make(engine, "ann")
    in_transaction(engine, lambda connection: revoke_token(connection, "ann", "bob"))
    assert shown(engine, "ann") is None
    assert in_transaction(engine, lambda connection: still_valid(connection, ["ann"])) == frozenset()
    with pytest.raises(TokenNotFoundError, match="no token called ann"):
        in_transaction(engine, lambda connection: revoke_token(connection, "ann", "bob"))


def test_use_is_noted_once_a_minute(engine: Engine) -> None:
    made = make(engine, "ann")
    noted = []
    for _ in range(2):
        in_transaction(engine, lambda connection: note_use(connection, made))
        found = shown(engine, "ann")
        noted.append(found and found.last_used_at)
    assert made.last_used_at is None
    assert noted[0] is not None
    assert noted[0] == noted[1]


def begun(engine: Engine, token: Token) -> str:
    secret = uuid4().hex
    in_transaction(engine, lambda connection: begin_session(connection, secret, token))
    return secret


def of_session(engine: Engine, secret: str) -> Token | None:
    return in_transaction(engine, lambda connection: session_shown(connection, secret))


def name_of(engine: Engine, secret: str) -> str:
    token = of_session(engine, secret)
    return token.name if token else ""


def test_a_session_is_of_its_token_until_it_is_ended_or_the_token_is_gone(engine: Engine) -> None:
    ann, zoe = make(engine, "ann"), make(engine, "zoe", days=_SOON)
    first, second, soon_over = begun(engine, ann), begun(engine, ann), begun(engine, zoe)
    assert (name_of(engine, first), name_of(engine, second)) == ("ann", "ann")
    assert shown(engine, first) is None
    in_transaction(engine, lambda connection: end_session(connection, first))
    assert (name_of(engine, first), name_of(engine, second)) == ("", "ann")
    eventually(lambda: of_session(engine, soon_over) is None)
    in_transaction(engine, lambda connection: revoke_token(connection, "ann", "bob"))
    assert of_session(engine, second) is None


def test_why_a_session_is_over_is_known(engine: Engine) -> None:
    ann, zoe = make(engine, "ann"), make(engine, "zoe", days=_SOON)
    ended, old, revoked, expired = (begun(engine, token) for token in (ann, ann, ann, zoe))
    in_transaction(engine, lambda connection: end_sessions(connection, "ann", "bob", session_id(ended)))

    def why(secret: str) -> SessionEnd | None:
        return in_transaction(engine, lambda connection: why_over(connection, secret))

    write(
        engine,
        "UPDATE fleet_history SET created_at = created_at - interval '8 days' WHERE target = %s",
        session_id(old),
    )
    eventually(lambda: why(expired) is SessionEnd.TOKEN)
    assert (why(ended), why(old), why("guessed")) == (SessionEnd.ENDED, SessionEnd.AGE, None)
    in_transaction(engine, lambda connection: revoke_token(connection, "ann", "bob"))
    make(engine, "ann")
    assert why(revoked) is SessionEnd.TOKEN, "another token has its name now"
    told = [row["message"] for row in read(engine, "SELECT message FROM fleet_history WHERE actor = 'bob' ORDER BY id")]
    assert "1 session of ann ended" in told


def test_a_session_has_an_end_and_its_row_goes_when_another_begins(engine: Engine) -> None:
    ann = make(engine, "ann")
    over = begun(engine, ann)
    write(engine, "UPDATE sessions SET ends_at = clock_timestamp()")
    assert of_session(engine, over) is None
    begun(engine, ann)
    assert len(read(engine, "SELECT 1 FROM sessions")) == 1


def test_of_very_many_sessions_of_a_token_the_eldest_end(engine: Engine) -> None:
    ann = make(engine, "ann")
    eldest, *_ = [begun(engine, ann) for _ in range(101)]
    assert of_session(engine, eldest) is None
    assert len(read(engine, "SELECT 1 FROM sessions")) == 100
