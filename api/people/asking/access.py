"""Who asks: the token that a request shows, found in Postgres each time, so that a revoked one is refused at once."""

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import timedelta

from psycopg import Connection
from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from api.people.asking.rates import Rates
from db.connection.engine import database_now, in_transaction
from db.tokens import note_use, token_shown
from domain.installation.tokens import NoTokenError, Token

COOKIE = "rollway_token"
"""Where the pages of this server keep a token. It counts for reads alone: another site cannot make a browser write."""
_SAFE = ("GET", "HEAD")
_NOTED_EVERY = timedelta(minutes=1)
_MOST_WELL_KNOWN = 1_000
_WRONG_A_SECOND, _WRONG_AT_ONCE = 2.0, 20.0


@dataclass(slots=True)
class Access:
    """`rates`: how often a token may be used."""

    engine: Engine
    rates: Rates
    _well_known: OrderedDict[str, None] = field(default_factory=OrderedDict, repr=False)
    _strangers: Rates = field(default_factory=lambda: Rates(_WRONG_A_SECOND, _WRONG_AT_ONCE))

    async def token(self, request: Request) -> Token:
        """The token that is shown. Raises NoTokenError and TooManyRequestsError."""
        return await self.known(_secret(request), request.client.host if request.client else "")

    async def known(self, secret: str, address: str) -> Token:
        """The token of this secret, shown from this address. Raises NoTokenError and TooManyRequestsError."""
        if secret not in self._well_known:
            self._strangers.refuse_spent(address)
        found = await run_in_threadpool(self._find, secret) if secret else None
        if found is None:
            raise self._refused(address, secret)
        self._keep(secret)
        self.rates.take(f"the token {found.name}")
        return found

    def _keep(self, secret: str) -> None:
        """So that who guesses from the same address, as behind a proxy, holds up nobody who was let in before."""
        self._well_known[secret] = None
        self._well_known.move_to_end(secret)
        if len(self._well_known) > _MOST_WELL_KNOWN:
            self._well_known.popitem(last=False)

    def _refused(self, address: str, secret: str) -> NoTokenError:
        if not secret:
            return NoTokenError(
                "this needs a token: send 'Authorization: Bearer TOKEN', as 'rollway token create' makes it"
            )
        self._well_known.pop(secret, None)
        self._strangers.take(address)
        return NoTokenError(
            "this token is unknown, revoked or expired; 'rollway token list' shows those that are valid"
        )

    def _find(self, secret: str) -> Token | None:
        def find(connection: Connection) -> Token | None:
            token = token_shown(connection, secret)
            if token is not None and _is_to_note(connection, token):
                note_use(connection, token)
            return token

        return in_transaction(self.engine, find)


def _is_to_note(connection: Connection, token: Token) -> bool:
    return token.last_used_at is None or database_now(connection) - token.last_used_at > _NOTED_EVERY


def _secret(request: Request) -> str:
    """What is shown; empty when nothing is."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return secret.strip()
    return request.cookies.get(COOKIE, "") if request.method in _SAFE else ""
