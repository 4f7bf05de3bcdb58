"""The caller of a request: its token is read from Postgres each time, and may make a bounded number of requests."""

import asyncio
import math
import time
from asyncio import Semaphore
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar
from urllib.parse import urlsplit

import prometheus_client
import structlog
from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics
from psycopg import Connection
from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from api.people.problems import TooManyRequestsError, TwoSessionsError
from db.access_tokens import hash_of, note_use, session_shown, token_shown, use_login_link
from db.connection.transactions import database_now, in_transaction
from domain.installation.tokens import NoTokenError, Token
from domain.traffic.entrances import SESSION_COOKIE, EntranceTakenError

_MOST_BUCKETS = 10_000


@dataclass(slots=True)
class AtOnce:
    """A limit of what one caller may have under way at once, so that nobody takes all places."""

    most: int
    _under_way: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def place(self, who: str, why: str) -> Iterator[None]:
        """Take a place until the block ends. Raises TooManyRequestsError when the caller has none left."""
        if self._under_way[who] >= self.most:
            raise TooManyRequestsError(f"{why}; ask again in 1 s", seconds=1)
        self._under_way[who] += 1
        try:
            yield
        finally:
            self._under_way[who] -= 1
            if not self._under_way[who]:
                del self._under_way[who]


@dataclass(slots=True)
class Rates:
    """Token buckets. `rate`: requests a second for long; `burst`: at once. The longest unused is dropped first."""

    rate: float
    burst: float
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def take(self, who: str) -> None:
        """Count a request. Raises TooManyRequestsError, with the seconds until the next one may come."""
        self.refuse_next(who)
        self.spend(who, 1)

    def refuse_next(self, who: str) -> None:
        """Raises TooManyRequestsError where `take` would, and takes none."""
        self.refuse_spent(who, f"{who} may ask {self.rate:g} times a second for long")

    def refuse_spent(self, who: str, why: str) -> None:
        """Raises TooManyRequestsError when the bucket is empty; takes nothing from it."""
        if self.is_spent(who):
            seconds = math.ceil((1 - self._remaining(who)) / self.rate)
            raise TooManyRequestsError(f"{why}; ask again in {seconds} s", seconds=seconds)

    def is_spent(self, who: str) -> bool:
        """Whether the bucket holds less than one request."""
        return self._remaining(who) < 1

    def spend(self, who: str, cost: float) -> None:
        """Charge `cost` to `who`. A caller in debt waits the longer."""
        self._keep(who, self._remaining(who) - cost)

    def _remaining(self, who: str) -> float:
        remaining, at = self._buckets.get(who, (self.burst, 0.0))
        return min(self.burst, remaining + (time.monotonic() - at) * self.rate)

    def _keep(self, who: str, remaining: float) -> None:
        self._buckets[who] = (remaining, time.monotonic())
        self._buckets.move_to_end(who)
        if len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)


disable_created_metrics()  # type: ignore[no-untyped-call]  # as everywhere: nobody asks when a counter began


class ObservedAsking:
    """The metrics, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.wrong_tokens = prometheus_client.Counter(
            "rollway_wrong_tokens",
            "Requests with a token, or a session, that is unknown, revoked or expired",
            registry=self.registry,
        )


_MOST_SECONDS = 10.0
"""The charge in advance: the longest plan takes half of it on a slow machine. The unused rest is returned."""


@dataclass(slots=True)
class Bill:
    """The seconds of processor time that a plan has taken until now."""

    seconds: float = 0.0


@dataclass(slots=True)
class Work:
    """`rates`: the seconds of processor time that a token may take."""

    rates: Rates
    _under_way: AtOnce = field(default_factory=lambda: AtOnce(1))

    @contextmanager
    def let_in(self, token: Token) -> Iterator[Bill]:
        """Let in one plan of a token. Raises TooManyRequestsError for a second one, and when its time is spent."""
        who = f"the token {token.name}"
        with self._under_way.place(who, f"a plan of {who} is under way, and one at a time is made"):
            self.rates.refuse_spent(who, f"the plans of {who} have taken too much time")
            self.rates.spend(who, _MOST_SECONDS)
            bill = Bill()
            try:
                yield bill
            finally:
                self.rates.spend(who, bill.seconds - _MOST_SECONDS)


_SAFE = ("GET", "HEAD")
_NOTED_EVERY = timedelta(minutes=1)
_MOST_WELL_KNOWN = 1_000
_WRONG_A_SECOND, _WRONG_AT_ONCE = 2.0, 20.0
_REFUSED_AFTER_SECONDS = 0.1
"""Seconds until a refusal for asking too often: a flood costs others little, and Postgres nothing."""
_LOOKS_AT_ONCE = 4
"""The most lookups at once of unknown secrets: the bound for what strangers take of Postgres and of the threads."""
_EVERYBODY = ""
"""The address used for all callers: on this machine anybody may claim any address."""


_log = structlog.get_logger(__name__)
T = TypeVar("T")
_Shown = Callable[[Connection, str], Token | None]
_NO_TOKEN = "this token is unknown, revoked or expired; 'rollway token list' shows those that are valid"  # noqa: S105
_NO_LINK = "this link is unknown; 'rollway open' makes another"
_NO_SESSION = "this login is over; log in to the page again"


@dataclass(slots=True)
class Access:
    """`rates`: how often a token may be used. `work`: what its plans may take."""

    engine: Engine
    rates: Rates
    work: Work
    observed: ObservedAsking = field(default_factory=ObservedAsking)
    _well_known: OrderedDict[str, str] = field(default_factory=OrderedDict, repr=False)
    _looking: Semaphore = field(default_factory=lambda: Semaphore(_LOOKS_AT_ONCE))
    _guessing: Semaphore = field(default_factory=lambda: Semaphore(1))
    _strangers: Rates = field(default_factory=lambda: Rates(_WRONG_A_SECOND, _WRONG_AT_ONCE))
    _all_strangers: Rates = field(default_factory=lambda: Rates(5 * _WRONG_A_SECOND, 5 * _WRONG_AT_ONCE))

    async def token(self, request: Request) -> Token:
        """The token of the request. Raises NoTokenError and TooManyRequestsError."""
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        return await self.token_of_secret(request, secret.strip() if scheme.lower() == "bearer" else "")

    async def on_page(self, request: Request) -> Token:
        """The token of the request, or of the login to the page. Raises NoTokenError and TooManyRequestsError.

        A session counts for reads alone, which the page itself asks for: no other site makes a browser write, or work.
        """
        if not _is_shown(request) and request.method in _SAFE and is_of_this_site(request):
            return await self.of_session(request)
        return await self.token(request)

    def session_of(self, request: Request) -> bytes | None:
        """The hash of the session of the login to the page; None where a token is shown."""
        return None if _is_shown(request) else hash_of(secret_of_session(request))

    async def token_of_secret(self, request: Request, secret: str) -> Token:
        """The token of this secret. Raises NoTokenError and TooManyRequestsError."""
        return await self._token_of(request, secret, token_shown, _NO_TOKEN)

    async def of_session(self, request: Request) -> Token:
        """The token of the login to the page. Raises NoTokenError and TooManyRequestsError."""
        return await self._token_of(request, secret_of_session(request), session_shown, _NO_SESSION)

    async def of_login_link(self, request: Request, secret: str) -> Token:
        """The token of this link, which is used up by that. Raises NoTokenError and TooManyRequestsError."""
        return await self._token_of(request, secret, use_login_link, _NO_LINK)

    async def given_for(self, request: Request, secret: str, lookup: Callable[[Connection], T | None], wrong: str) -> T:
        """What `lookup` finds for a secret of one use; a wrong one counts as a wrong token. Raises NoTokenError."""
        address = request.client.host if request.client else ""
        async with self._guessing if self._strangers.is_spent(address) else self._looking:
            result = await run_in_threadpool(in_transaction, self.engine, lookup)
        if result is None:
            raise self._refused(address, secret, wrong)
        return result

    async def _token_of(self, request: Request, secret: str, lookup: _Shown, wrong: str) -> Token:
        address = request.client.host if request.client else ""
        if (who := self._well_known.get(secret)) and self.rates.is_spent(who):
            await asyncio.sleep(_REFUSED_AFTER_SECONDS)
            self.rates.refuse_next(who)
        token = await self._looked_up(address, secret, lookup) if secret else None
        if token is None:
            raise self._refused(address, secret, wrong)
        self.rates.take(self.keep(secret, token))
        return token

    async def _looked_up(self, address: str, secret: str, lookup: _Shown) -> Token | None:
        """A token is looked up before anybody is refused, so that a right one is let in while others guess.

        a secret that was let in before            -> at once
        an address that has shown many wrong ones  -> one lookup at a time, next to those of all others
        any other address                          -> a few lookups at a time
        """
        if secret in self._well_known:
            return await run_in_threadpool(self._find, secret, lookup)
        lane = self._guessing if self._strangers.is_spent(address) else self._looking
        async with lane:
            return await run_in_threadpool(self._find, secret, lookup)

    def keep(self, secret: str, token: Token) -> str:
        """Remember this secret, so that others who guess from the same address, as behind a proxy, do not delay it."""
        who = self._well_known[secret] = f"the token {token.name}"
        self._well_known.move_to_end(secret)
        if len(self._well_known) > _MOST_WELL_KNOWN:
            self._well_known.popitem(last=False)
        return who

    def _refused(self, address: str, secret: str, wrong: str) -> NoTokenError:
        if not secret:
            return NoTokenError(
                "this needs a token: send 'Authorization: Bearer TOKEN', as 'rollway token create' makes it"
            )
        self._well_known.pop(secret, None)
        self.observed.wrong_tokens.inc()
        spent = "too many wrong tokens were shown"
        self._strangers.refuse_spent(address, f"{spent} from {address}")
        self._all_strangers.refuse_spent(_EVERYBODY, spent)
        self._strangers.spend(address, 1)
        self._all_strangers.spend(_EVERYBODY, 1)
        _log.warning("a wrong token was shown", address=address)
        return NoTokenError(wrong)

    def _find(self, secret: str, lookup: _Shown) -> Token | None:
        def find(connection: Connection) -> Token | None:
            token = lookup(connection, secret)
            if token is not None and _is_to_note(connection, token):
                note_use(connection, token, secret)
            return token

        return in_transaction(self.engine, find)


def _is_to_note(connection: Connection, token: Token) -> bool:
    return token.last_used_at is None or database_now(connection) - token.last_used_at > _NOTED_EVERY


@contextmanager
def names_withheld(token: Token) -> Iterator[None]:
    """Withhold from errors the names of deployments that the token is not for."""
    try:
        yield
    except EntranceTakenError as error:
        if token.sees(str(error.detail["owner"])):
            raise
        raise error.unnamed() from None


def secret_of_session(request: Request) -> str:
    """The session's secret in the cookie; empty when nobody is logged in.

    Raises TwoSessionsError: browsers keep one for each host name, so somebody else has put another next to it.
    """
    pairs = [cookie.partition("=") for line in request.headers.getlist("cookie") for cookie in line.split(";")]
    match [value.strip() for name, _, value in pairs if name.strip() == SESSION_COOKIE]:
        case []:
            return ""
        case [secret]:
            return secret
    raise TwoSessionsError(f"the cookie {SESSION_COOKIE} came twice; clear the cookies of this page, then log in again")


def _is_shown(request: Request) -> bool:
    return request.headers.get("authorization", "").lower().startswith("bearer ")


def is_of_this_site(request: Request) -> bool:
    """Whether the request comes from a page of this server or from the address bar; an old browser names its page."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return site in ("same-origin", "none")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")
