"""The servers, for commands: reads by the paths of the HTTP API, writes through the commands' own path."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from urllib.parse import quote

import psycopg
from pydantic import TypeAdapter

from api.people.paths import DEPLOYMENT, named_in
from api.people.reads.read_table import BY_PATH
from api.people.requests import PageParameters, ReadRequest, parameters_of
from cli.remote import needs_database, remote
from cli.terminal.exits import UnreachableError
from db.connection.server import refuse_unfit
from db.unreachable import AWAY
from db.views.deployment_view import DeploymentView
from db.views.documents import plain
from db.views.fleet_views import SignsOfLife
from db.views.route_views import RouteView
from db.views.timeline import RevisionView
from domain.commands.base import Command
from domain.installation import settings
from domain.installation.settings import libpq_url
from domain.installation.tokens import Role, Token
from domain.text.errors import InvalidInputError, RevisionNotFoundError
from stack.home.folder import find_home
from stack.home.stack_state import read_state
from stack.stack_errors import StackError
from stack.stack_status import export_urls, stack_status


@contextmanager
def database_errors() -> Iterator[None]:
    """Turn an error of the driver into one sentence with host and port, never the password."""
    try:
        yield
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
        message = f"the database at {database_address()} lacks tables of this version of Rollway; run 'rollway migrate'"
        raise UnreachableError(message) from None
    except AWAY as error:
        message = f"PostgreSQL at {database_address()} {_why_not(error)}"
        raise UnreachableError(message, address=database_address()) from None


def database_address() -> str:
    """host:port/database of DATABASE_URL."""
    return settings.database_address(os.environ.get("DATABASE_URL", ""))


def _why_not(error: psycopg.Error) -> str:
    words = str(error)
    if "authentication failed" in words or "no password supplied" in words:
        return "refuses the user or the password of DATABASE_URL"
    if "root certificate file" in words:
        return "shows a certificate that cannot be checked: name the file of its authority with ?sslrootcert="
    if "certificate verify failed" in words:
        return "shows a certificate that ?sslrootcert= of DATABASE_URL does not vouch for"
    if "does not match host name" in words:
        return "shows a certificate for another name than that in DATABASE_URL"
    if "does not support SSL" in words:
        return "speaks no TLS, and the sslmode of DATABASE_URL asks for it"
    if "does not exist" in words:
        return "does not know the user or the database of DATABASE_URL"
    if isinstance(error, (psycopg.errors.QueryCanceled, psycopg.errors.TransactionTimeout)):
        return "did not answer in time"
    if isinstance(error, psycopg.errors.DiskFull):
        return "has no space left on its disk"
    if error.sqlstate is not None:  # it answered
        return f"ended what was asked: {words.partition(chr(10))[0]}; ask again"
    return _unreached()


_AWAY = "cannot be reached: it does not run, or DATABASE_URL does not say where"


def _unreached() -> str:
    """The sentence with the state of this folder's PostgreSQL, where DATABASE_URL is its; without 'rollway status'."""
    home = find_home(os.environ)
    state = read_state(home)
    if state is None or state.database_url != os.environ.get("DATABASE_URL"):
        return _AWAY
    stack = stack_status(home)
    if stack.phase == "stopped":
        return f"cannot be reached: nothing of the stack in {home.root} runs any more; 'rollway up' starts it"
    postgres = next((part for part in stack.parts if part.name == "postgres"), None)
    if postgres is None:
        return _AWAY
    advice = stack.advice or f"its log is {home.log('postgres')}"
    if postgres.state == "running":
        return f"does not answer, though it runs in the stack in {home.root}; {advice}"
    reason = f", {postgres.error}" if postgres.error else ""
    return f"cannot be reached: in the stack in {home.root} it is {postgres.state}{reason}; {advice}"


T = TypeVar("T")
P = ParamSpec("P")
_PAGE = 500
_ADAPTERS: dict[object, TypeAdapter[Any]] = {}
_HERE = Token(name="here", role=Role.ADMIN, created_by="here", created_at=datetime.min.replace(tzinfo=UTC))
"""The token of direct access: the database may be read in full."""
_SETTINGS = "SET LOCAL timezone = 'UTC'; SET LOCAL statement_timeout = 20000"
"""The setting of one transaction, as a connection pooler may keep no session."""


class Reader:
    """Reads: from the database over one connection, each from one snapshot, or from the server of ROLLWAY_URL.

    The connection is opened again after it was lost.
    """

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

    def ask(self, path: str, *names: object, **fields: object) -> Any:  # noqa: ANN401  (JSON)
        """The document at this path of the HTTP API, over HTTP or read here. Raises the refusals of the read.

        `names`: what the path names, in its order; `fields`: the parameters, of which None is left out.
        """
        entry, values = BY_PATH[path], {name: value for name, value in fields.items() if value is not None}
        path_of = dict(zip(named_in(path), map(str, names), strict=True))
        if self._remote is not None:
            url = path.format(**{name: quote(value, "") for name, value in path_of.items()})
            how = {"params": values} if entry.method == "GET" else {"json": values}
            return self._remote.ask(entry.method, url, **how)
        request = ReadRequest(_HERE, path_of, parameters_of(entry.parameters, values))
        return plain(entry.finish(request, self.look(entry.find, request)))

    def view(self, kind: type[T], path: str, *names: object, **fields: object) -> T:
        """The view at this path. Fields of a later release of the server are ignored."""
        return build(kind, self.ask(path, *names, **fields))

    def views(self, kind: type[T], path: str, *names: object, most: int | None = None, **fields: object) -> list[T]:
        """The views of the list at this path, `most` at most, from as many pages as it takes."""
        items: list[T] = []
        while True:
            if issubclass(BY_PATH[path].parameters, PageParameters):
                fields["limit"] = _PAGE if most is None else min(_PAGE, most - len(items))
            document = self.ask(path, *names, **fields)
            items += [build(kind, item) for item in document["items"]]
            fields["cursor"] = document.get("next")
            if fields["cursor"] is None or len(items) == most:
                return items

    def look(
        self, query: Callable[Concatenate[psycopg.Connection[Any], P], T], *arguments: P.args, **more: P.kwargs
    ) -> T:
        """The result of `query(connection, *arguments)`, here. Raises UnreachableError naming host and port."""
        if self._remote is not None:
            raise needs_database()
        try:
            with database_errors():
                connection = self._open()
                with connection.transaction():
                    connection.execute(_SETTINGS)
                    return query(connection, *arguments, **more)
        except UnreachableError:
            self._close()
            raise

    def _open(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            url = libpq_url(os.environ["DATABASE_URL"])
            try:
                self._connection = psycopg.connect(
                    url, autocommit=True, prepare_threshold=None, connect_timeout=3, application_name="rollway-cli"
                )
            except psycopg.ProgrammingError:
                message = "DATABASE_URL cannot be read; it is postgresql://user:password@host:port/database"
                raise UnreachableError(message) from None
            refuse_unfit(self._connection, database_address())
            self._connection.read_only = True  # by each BEGIN, or libpq would take every server for a standby
            self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def build(kind: type[T], document: object) -> T:
    """The document as a value of this kind."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    value: T = _ADAPTERS[kind].validate_python(document)
    return value


def find_servers() -> None:
    """Set DATABASE_URL, REDIS_URL and ROLLWAY_HOME where they are missing. Raises UnreachableError."""
    if remote() is not None:
        raise needs_database()
    try:
        export_urls(os.environ)
    except StackError as error:
        raise UnreachableError(str(error)) from None


def send(command: Command) -> dict[str, Any]:
    """Carry out a command here and now and wake the workers; returns what it did.

    Raises the refusals of `domain` and UnreachableError. A Redis that does not answer is no error:
    the workers find the change at their next tick.
    """
    if (server := remote()) is not None:
        return server.send(command)
    find_servers()
    from cli.terminal.server_warnings import show_notes  # noqa: PLC0415
    from tasks.command_tasks import run_command  # noqa: PLC0415  (two seconds, which reading commands can save)

    show_notes()
    with _server_errors():
        return dict(run_command(command.task, command.model_dump(mode="json"))["result"])


@contextmanager
def _server_errors() -> Iterator[None]:
    """Turn an error of the driver, or a setting that makes no sense, into one sentence."""
    from redis.exceptions import RedisError  # noqa: PLC0415

    from cli.terminal.server_warnings import look_at_redis  # noqa: PLC0415

    try:
        with suppress(RedisError):
            look_at_redis()
        with database_errors():
            yield
    except InvalidInputError as error:
        if str(error.detail.get("field")).startswith(("DATABASE_URL", "REDIS_URL", "ROLLWAY_")):
            raise UnreachableError(error.message) from None
        raise


_RECENTLY = timedelta(hours=1)


def deployment_named(reader: Reader, name: str) -> DeploymentView:
    """The deployment of that name. Raises DeploymentNotFoundError."""
    return reader.view(DeploymentView, DEPLOYMENT, name)


def existing_deployments(reader: Reader, most: int | None = None) -> list[DeploymentView]:
    """All deployments that are not destroyed, or those of the token; the first `most` by name."""
    return reader.views(DeploymentView, "/v1/deployments", most=most)


def signs_of_life(reader: Reader) -> SignsOfLife:
    """The last signs of life of workers, beat and the server for proxies."""
    return reader.view(SignsOfLife, "/v1/signs-of-life")


def revision_shown(reader: Reader, deployment: str, name: str) -> RevisionView | None:
    """The revision of that name, masked; None where there is none."""
    try:
        return reader.view(RevisionView, f"{DEPLOYMENT}/revisions/{{revision}}", deployment, name)
    except RevisionNotFoundError:
        return None


def failure_to_show(reader: Reader, view: DeploymentView) -> RouteView | None:
    """The replica that failed last, if starts fail, a rollout had failures, or it ended within the last hour."""
    failed = last_failed_route(reader, view.name)
    is_failing = view.failed_starts or view.degraded_reason or (view.rollout and view.rollout.failed_routes)
    is_shown = failed is not None and (is_failing or view.now - failed.status_changed_at < _RECENTLY)
    return failed if is_shown else None


def last_failed_route(reader: Reader, deployment: str) -> RouteView | None:
    document = reader.ask(f"{DEPLOYMENT}/routes", deployment)["last_failed"]
    return build(RouteView, document) if document else None
