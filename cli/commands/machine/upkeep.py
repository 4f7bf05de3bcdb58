"""`rollway migrate`, `slots`, `units` and `redis-user`: upkeep of an installation."""

import os
from pathlib import Path
from typing import Annotated

import psycopg
import typer
from sqlalchemy.exc import DBAPIError

from cli.client import database_address, database_errors, find_servers
from cli.options import AsJson
from cli.terminal.exits import MigrationError, UnreachableError, UsageError
from cli.terminal.output import print_json, printer
from cli.terminal.server_warnings import look_at_redis
from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import make_engine
from migrations.schema import is_known, number, upgrade
from stack import units as systemd
from stack.home.folder import find_home
from stack.parts.external_servers import check_database
from stack.parts.valkey import add_user, remove_user
from stack.stack_errors import StackError
from stack.supervisor.supervise import one_at_a_time

_BUSY = (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled)


def migrate(*, as_json: AsJson = False) -> None:
    """Bring the database to the newest schema: that of DATABASE_URL, else the one of the stack that runs here.

    Needed once for a new database of your own, and again with each new version; 'rollway up' does it by itself.
    Workers of the version before may work on meanwhile. Harmless when the schema is the newest already.
    """
    if not os.environ.get("DATABASE_URL"):
        find_servers()
    try:
        check_database(os.environ["DATABASE_URL"])
    except StackError as error:
        raise UnreachableError(str(error)) from None
    with database_errors():
        before, after = _upgrade()
    if as_json:
        return print_json({"database": database_address(), "before": before, "after": after})
    has = f"has schema {after} already" if before == after else f"has schema {after} now"
    had = f"; it had {before}" if before not in (None, after) else ""
    return printer().print(f"The database {database_address()} {has}{had}.")


def _upgrade() -> tuple[str | None, str | None]:
    """The schema before and after. Raises MigrationError and the driver's error of a server that is away."""
    engine = make_engine(DatabaseSettings.from_environment(os.environ).without_limits(), "rollway migrate")
    try:
        if not is_known(version := number(engine)):
            raise MigrationError(
                f"the database {database_address()} has schema {version}, which this release does not know: a newer "
                "release has migrated it; or it is of before 0.1.0, which no release migrates, so name an empty "
                "database in DATABASE_URL"
            )
        return upgrade(engine)
    except DBAPIError as error:
        if isinstance(error.orig, _BUSY):
            why = "a table stayed locked for too long; nothing was changed, so run it again"
        elif isinstance(error.orig, psycopg.OperationalError):
            raise error.orig from None
        else:
            why = f"{str(error.orig).partition(chr(10))[0]}; nothing was changed"
        raise MigrationError(f"the database {database_address()} cannot be migrated: {why}") from None
    finally:
        engine.dispose()


def slots(
    *,
    count: Annotated[
        int | None, typer.Argument(metavar="N", min=1, max=64, help="The new number.", show_default=False)
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Each worker by its own ROLLWAY_SLOTS again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show or set how many workers may share a handler. All keep to it within a second.

    A worker that finds more to do than fits into one chunk asks others for help, up to this number.
    """
    from redis.exceptions import RedisError  # noqa: PLC0415  (Celery's imports take a second, which --help can save)

    from tasks.redis.locks import ask_for_slots, slots_asked_for  # noqa: PLC0415
    from tasks.worker.connections import redis_client  # noqa: PLC0415

    if reset and count is not None:
        raise typer.BadParameter("N and --reset do not go together")
    find_servers()
    try:
        look_at_redis()
        if reset or count is not None:
            ask_for_slots(redis_client(), count)
        count = slots_asked_for(redis_client())
    except RedisError as error:
        raise UnreachableError(f"Redis does not answer: {error}") from None
    if as_json:
        return print_json({"slots": count})
    own = "each worker goes by its own ROLLWAY_SLOTS (1, if not set)"
    return printer().print(own if count is None else f"{count} for each handler")


_ENVIRONMENT_FILE = "/etc/rollway/environment"
_FORBIDDEN = set(" \t\n%$\"'\\")


def units(
    *,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FOLDER", help="Write files there instead.", show_default="standard output"),
    ] = None,
    user: Annotated[str, typer.Option("--user", help="As whom all of it runs; root only for replicas as others.")] = (
        "rollway"
    ),
    environment_file: Annotated[
        str, typer.Option("--environment-file", metavar="FILE", help="What the units read their settings from.")
    ] = _ENVIRONMENT_FILE,
    as_json: AsJson = False,
) -> None:
    """Write systemd units: workers, beat, the server for proxies, Flower, and an example of their environment file.

    They start the Rollway that this command is of. A worker that is stopped or restarted leaves its replicas running.
    """
    _refuse_odd("--user", user)
    _refuse_odd("--environment-file", environment_file)
    if not environment_file.startswith("/"):
        raise UsageError(f"--environment-file must be an absolute path, which {environment_file!r} is not")
    files = systemd.files(user, environment_file)
    if to is not None:
        _write(to, files)
    if as_json:
        return print_json({"folder": None if to is None else to.absolute(), "files": files})
    if to is not None:
        return printer().print(f"{len(files)} files written to {to}: {', '.join(files)}.")
    return typer.echo("\n".join(f"# {name}\n{text}" for name, text in files.items()), nl=False)


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        os.chmod(folder / "rollway.environment", 0o600)  # noqa: PTH101 -- passwords are filled in later
    except OSError as error:
        raise UsageError(f"--to {folder}: {error.strerror}") from None


def _refuse_odd(option: str, value: str) -> None:
    if not value or _FORBIDDEN & set(value):
        raise UsageError(f"{option} must be a plain word without spaces, quotes, % and $, which {value!r} is not")


def redis_user(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the service.", show_default=False)],
    remove: Annotated[bool, typer.Option("--remove", help="End the user, and its connections at once.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the REDIS_URL of a service that sends commands, with a password of its own.

    With it Celery sends every command and reads the answers, and nothing else: no other key, no other queue, no message
    of somebody else. The same name gets the same URL again. 'rollway up --redis-port 6379' opens the port in it.
    """
    home = find_home(os.environ)
    with one_at_a_time(home, lambda: None):
        if remove:
            remove_user(home, name)
            return print_json({"name": name, "removed": True}) if as_json else printer().print(f"{name} is removed.")
        url = add_user(home, name)
    return print_json({"name": name, "url": url}) if as_json else typer.echo(url)
