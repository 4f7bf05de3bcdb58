"""The servers as a command reaches them: reads over one connection, writes through the commands' own path."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar
from uuid import UUID

import psycopg

from cli.database_errors import database_address, database_errors
from cli.remote import Remote, needs_database, remote
from cli.terminal.exits import UnreachableError
from db.connection.server import refuse_unfit
from domain.words.errors import InvalidInputError
from stack.connect import export_urls
from stack.errors import StackError
from stack.parts.external import libpq_url

if TYPE_CHECKING:
    from domain.commands.base import Command  # what only reads needs no commands, which take a tenth of a second
    from tasks.hosts.log_asking import Pieces, Places

T = TypeVar("T")
P = ParamSpec("P")
_OPTIONS = "-c timezone=UTC -c statement_timeout=20000 -c default_transaction_read_only=on"


class Reader:
    """A connection that only reads, each read from one snapshot; it is opened again after it was lost."""

    def __init__(self) -> None:
        self._remote = remote()
        if self._remote is None:
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
        """`view(connection, *arguments)`, or the same over HTTP. Raises UnreachableError naming host and port."""
        if self._remote is not None:
            return read_over_http(self._remote, view, *arguments, **more)
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
            refuse_unfit(self._connection, database_address())
            self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def read_over_http(server: Remote, view: Callable[..., T], *arguments: object, **more: object) -> T:
    """What `view(connection, *arguments)` would read. Raises UnreachableError for what the server has no answer to."""
    from cli.remote_views.views import VIEWS  # noqa: PLC0415  (only those who ask over HTTP need it)

    if view not in VIEWS:
        raise needs_database()
    found: T = VIEWS[view](server, *arguments, **more)
    return found


def find_servers() -> None:
    """Set DATABASE_URL, REDIS_URL and ROLLWAY_HOME where they are missing. Raises UnreachableError."""
    if remote() is not None:
        raise needs_database()
    try:
        export_urls(os.environ)
    except StackError as error:
        raise UnreachableError(str(error)) from None


def send(command: "Command") -> dict[str, Any]:
    """Carry out a command here and now and wake the workers; returns what it did.

    Raises the refusals of `domain.words.errors` and UnreachableError. A Redis that does not answer is no error:
    the workers find the change at their next tick.
    """
    if (server := remote()) is not None:
        return server.send(command)
    find_servers()
    from cli.terminal.notes import show_notes  # noqa: PLC0415
    from tasks.asked.commands import run_command  # noqa: PLC0415  (two seconds, which reading commands can save)

    show_notes()
    with _server_errors():
        return dict(run_command(command.task, command.model_dump(mode="json"))["result"])


def ask_hosts_for_logs(deployment_id: UUID, asked: "Mapping[str, Places]", lines: int) -> "dict[str, Pieces]":
    """What replicas of a deployment on these hosts have printed; a host that does not answer is missing."""
    if (server := remote()) is not None:
        from cli.remote_views.logs import logs_of  # noqa: PLC0415  (as above)

        return logs_of(server, deployment_id, asked, lines)
    from redis.exceptions import RedisError  # noqa: PLC0415  (as above)

    from tasks.hosts.log_asking import ask_hosts  # noqa: PLC0415
    from tasks.worker.connections import redis_client  # noqa: PLC0415

    try:
        return ask_hosts(redis_client(), asked, lines)
    except RedisError:
        return {}


@contextmanager
def _server_errors() -> Iterator[None]:
    """Turn what the driver raises, and a setting that makes no sense, into one sentence."""
    from redis.exceptions import RedisError  # noqa: PLC0415

    from cli.terminal.notes import look_at_redis  # noqa: PLC0415

    try:
        with suppress(RedisError):
            look_at_redis()
        with database_errors():
            yield
    except InvalidInputError as error:
        if str(error.detail.get("field")).startswith(("DATABASE_URL", "REDIS_URL", "ROLLWAY_")):
            raise UnreachableError(error.message) from None
        raise
