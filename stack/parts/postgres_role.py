"""The role that Rollway has in its embedded PostgreSQL: owner of its database, and nothing else."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from stack.errors import StackError, folder_errors
from stack.parts.account import ServerAccount

ROLE = DATABASE = "rollway"
SUPERUSER = "postgres"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
_MARK = "rollway_is_no_superuser"  # a file, since asking the cluster itself would start a server each time

_MAKE = ("CREATE ROLE rollway LOGIN PASSWORD '{password}'", "CREATE DATABASE rollway OWNER rollway")

_GIVE_ALL = """
    DO $$ DECLARE change text; BEGIN FOR change IN
    SELECT format('ALTER TABLE %s OWNER TO rollway', oid::regclass) FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')
    UNION ALL SELECT format('ALTER ROUTINE %s OWNER TO rollway', oid::regprocedure) FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT format('ALTER TYPE %s OWNER TO rollway', oid::regtype) FROM pg_type
    WHERE typnamespace = 'public'::regnamespace AND typtype IN ('e', 'd')
    LOOP EXECUTE change; END LOOP; END $$
"""

# The first superuser of a cluster stays one for ever, and nobody can rename himself: so it gets another name, from a
# superuser of the moment, and its old name goes to a new role, with everything in the database.
_GIVE_UP = (
    "BEGIN",
    "CREATE ROLE rollway_renames SUPERUSER",
    "SET SESSION AUTHORIZATION rollway_renames",
    "ALTER ROLE rollway RENAME TO postgres",
    "ALTER ROLE postgres PASSWORD NULL",
    "CREATE ROLE rollway LOGIN PASSWORD '{password}'",
    "ALTER DATABASE rollway OWNER TO rollway",
    _GIVE_ALL,
    "SET SESSION AUTHORIZATION postgres",
    "DROP ROLE rollway_renames",
    "COMMIT",
)


def make_role(data: Path, account: ServerAccount, password: str) -> None:
    """Give a new cluster our role and its database. Raises StackError."""
    single_user(data, account, [statement.format(password=password) for statement in _MAKE], "postgres")
    _mark(data, account)


def give_up_superuser(data: Path, account: ServerAccount, password: str) -> bool:
    """Take the rights of a superuser from the role of a cluster that was made with them; whether it had them.

    While no server runs. Raises StackError.
    """
    if (data / _MARK).exists():
        return False
    single_user(data, account, [statement.format(password=password) for statement in _GIVE_UP], DATABASE)
    _mark(data, account)
    return True


def reset_password(data: Path, account: ServerAccount, password: str) -> None:
    """Give the role a new password while no server runs: the remembered one was lost. Raises StackError."""
    single_user(data, account, [f"ALTER ROLE {ROLE} PASSWORD '{password}'"], DATABASE)


def single_user(data: Path, account: ServerAccount, statements: Sequence[str], database: str) -> None:
    """Carry out statements as the superuser while no server runs. Raises StackError."""
    options = ("--single", "-D", account.data_argument(data), "-c", "log_checkpoints=off", database)
    lines = "".join(f"{' '.join(statement.split())}\n" for statement in statements)  # a statement ends with its line
    run_program(data, account, account.command("postgres", *options), lines)


def run_program(
    folder: Path, account: ServerAccount, command: tuple[str, ...], words: str = "", pass_fds: tuple[int, ...] = ()
) -> None:
    """Run one of PostgreSQL's programs to its end in `folder`. Raises StackError with its own last words."""
    done = subprocess.run(  # noqa: S603 -- the wheel's own programs
        command,
        input=words,
        pass_fds=pass_fds,
        cwd=folder,
        user=account.user,
        group=account.user,
        extra_groups=None if account.user is None else [],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode == 0 and "ERROR:" not in done.stderr and "FATAL:" not in done.stderr:
        return
    if "No space left on device" in done.stderr:
        raise StackError(f"There is no space left for {folder}: free some, or set ROLLWAY_HOME to another disk.")
    telling = [line for line in done.stderr.splitlines() if "error" in line.lower() or "FATAL" in line]
    reason = (telling or done.stderr.splitlines() or [f"exit code {done.returncode}"])[0]
    raise StackError(f"PostgreSQL's data folder {folder} cannot be prepared: {reason.strip()}.")


def _mark(data: Path, account: ServerAccount) -> None:
    with folder_errors(data):
        mark = data / _MARK
        mark.touch(mode=0o600)
        if account.user is not None:
            os.chown(mark, account.user, account.user)  # pg_basebackup copies each file, as the server
