"""The servers as a command reaches them: reads over one connection, writes through the commands' own path."""

import os
import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from urllib.parse import urlsplit

import psycopg

from cli.exits import UnreachableError
from domain.commands import Command
from domain.errors import InvalidInputError
from stack.connect import export_urls
from stack.errors import StackError
from stack.parts.external import libpq_url

T = TypeVar("T")
P = ParamSpec("P")
_OPTIONS = "-c timezone=UTC -c statement_timeout=20000 -c default_transaction_read_only=on"


class Reader:
    """A connection that only reads, each read from one snapshot; it is opened again after it was lost."""

    def __init__(self) -> None:
        find_servers()
        self._connection: psycopg.Connection[Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def read(
        self, view: Callable[Concatenate[psycopg.Connection[Any], P], T], *arguments: P.args, **more: P.kwargs
    ) -> T:
        """`view(connection, *arguments)`. Raises UnreachableError naming host and port."""
        try:
            with database_errors():
                connection = self._open()
                with connection.transaction():
                    return view(connection, *arguments, **more)
        except UnreachableError:
            self._close()
            raise

    def _open(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            url = libpq_url(os.environ["DATABASE_URL"])
            try:
                self._connection = psycopg.connect(
                    url, autocommit=True, connect_timeout=3, options=_OPTIONS, application_name="rollway-cli"
                )
            except psycopg.ProgrammingError:
                message = "DATABASE_URL cannot be read; it is postgresql://user:password@host:port/database"
                raise UnreachableError(message) from None
            self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def find_servers() -> None:
    """Set DATABASE_URL, REDIS_URL and ROLLWAY_HOME where they are missing. Raises UnreachableError."""
    try:
        export_urls(os.environ)
    except StackError as error:
        raise UnreachableError(str(error)) from None


def send(command: Command) -> dict[str, Any]:
    """Carry out a command here and now and wake the workers; returns what it did.

    Raises the refusals of `domain.errors` and UnreachableError. A Redis that does not answer is no error: the workers
    find the change at their next tick.
    """
    import structlog  # noqa: PLC0415  (Celery and SQLAlchemy take two seconds, which reading commands can save)
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415

    from tasks.commands import run_command  # noqa: PLC0415

    structlog.configure(processors=[_only_the_event], logger_factory=_to_stderr)
    try:
        with database_errors():
            try:
                return dict(run_command(command.task, command.model_dump(mode="json"))["result"])
            except DBAPIError as error:
                raise error.orig or error from None
    except InvalidInputError as error:
        if str(error.detail.get("field")).startswith(("DATABASE_URL", "REDIS_URL", "ROLLWAY_")):
            raise UnreachableError(error.message) from None
        raise


@contextmanager
def database_errors() -> Iterator[None]:
    """Turn what the driver raises into one sentence with host and port, never the password."""
    try:
        yield
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
        message = f"the database at {database_address()} lacks tables of this version of Rollway; run 'make migrate'"
        raise UnreachableError(message) from None
    except psycopg.OperationalError as error:
        message = f"PostgreSQL at {database_address()} {_why_not(error)}"
        raise UnreachableError(message, address=database_address()) from None


def database_address() -> str:
    """host:port/database of DATABASE_URL."""
    try:
        parts = urlsplit(os.environ.get("DATABASE_URL", ""))
        port = parts.port or 5432
    except ValueError:
        return "the address of DATABASE_URL"
    return f"{parts.hostname}:{port}{parts.path}"


def _why_not(error: psycopg.Error) -> str:
    words = str(error)
    if "authentication failed" in words or "no password supplied" in words:
        return "refuses the user or the password of DATABASE_URL"
    if "does not exist" in words:
        return "does not know the user or the database of DATABASE_URL"
    if isinstance(error, psycopg.errors.QueryCanceled):
        return "did not answer in time"
    if isinstance(error, psycopg.errors.DiskFull):
        return "has no space left on its disk"
    return "cannot be reached; is the stack running ('rollway status'), and is DATABASE_URL right?"


def _to_stderr(*_: object) -> object:
    """Today's standard error: a logger that is made once would keep the one of its first line."""
    import structlog  # noqa: PLC0415

    return structlog.PrintLogger(sys.stderr)


def _only_the_event(_logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
    """A note for people: what a worker logs about a lost wake, without the key and the driver's words."""
    return f"note: {event['event']}"
