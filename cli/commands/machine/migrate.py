"""`rollway migrate`."""

import os

import psycopg
from sqlalchemy.exc import DBAPIError

from cli.database_errors import database_address, database_errors
from cli.options import AsJson
from cli.servers import find_servers
from cli.terminal.exits import MigrationError, UnreachableError
from cli.terminal.output import print_json, printer
from db.connection.engine import make_engine
from db.connection.settings import DatabaseSettings
from migrations.schema import is_known, number, upgrade
from stack.errors import StackError
from stack.parts.external import check_database

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
    """The schema before and after. Raises MigrationError and what the driver says of a server that is away."""
    engine = make_engine(DatabaseSettings.from_environment(os.environ).without_limits(), "rollway migrate")
    try:
        if not is_known(seen := number(engine)):
            raise MigrationError(
                f"the database {database_address()} has schema {seen}, which this release does not know: a newer one "
                "has migrated it, and goes on with it; or it is of before 0.1.0, from which no way leads here, so name "
                "an empty database in DATABASE_URL"
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
