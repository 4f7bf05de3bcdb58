"""Says errors of PostgreSQL and its driver as one sentence with host and port."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from cli.terminal.exits import UnreachableError
from db.silence import AWAY
from domain.installation import database_url
from stack.home.folder import find_home
from stack.home.state import read_state
from stack.status import stack_status


@contextmanager
def database_errors() -> Iterator[None]:
    """Turn what the driver raises into one sentence with host and port, never the password."""
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
    return database_url.database_address(os.environ.get("DATABASE_URL", ""))


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
    """With what the stack of this folder says about its PostgreSQL, where DATABASE_URL is its; no 'rollway status'."""
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
    said = f", {postgres.error}" if postgres.error else ""
    return f"cannot be reached: in the stack in {home.root} it is {postgres.state}{said}; {advice}"
