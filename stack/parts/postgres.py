"""The embedded PostgreSQL: its data folder, made once, and how to start it."""

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

import psutil

from stack.home.sockets import POSTGRES_SOCKET
from stack.part_specs import Ready, StackPart
from stack.parts.postgres_account import MAJOR_VERSION, ServerAccount
from stack.stack_errors import StackError, folder_errors

_SPACE_NEEDED = 150 * 1024 * 1024
_LAST_OF_INITDB = 5  # template1, template0 and postgres are 1, 4 and 5; a database made later has a larger number


_BY_SOCKET = "local all all scram-sha-256\n"


def postgres_url(folder: Path, password: str) -> str:
    """The address of the embedded server's database, with its password. `folder` holds its Unix socket."""
    return f"postgresql://{ROLE}:{password}@/{DATABASE}?host={quote(str(folder))}"


def prepare_data(
    folder: Path,
    account: ServerAccount,
    password: str,
    *,
    durable: bool = True,
    say: Callable[[str], None] = lambda _: None,
) -> Path:
    """Make sure that `folder`/data holds a whole cluster with our role and database, and return it. No server runs.

    A cluster is made under another name and then renamed, so a folder `data` was once complete. `durable` waits for
    the disk. `say` hears what was found broken or had to be changed. Raises StackError: no space, not writable,
    another version, not a cluster.
    """
    data = folder / "data"
    with folder_errors(folder):
        for leftover in folder.glob("initdb-*"):
            say("an earlier first start was interrupted, its half-made PostgreSQL data folder is removed")
            shutil.rmtree(leftover)
        if data.exists() and not _holds_cluster(data):
            say("the PostgreSQL data folder holds no cluster: a new one is made")
            shutil.rmtree(data)
        if not data.exists():
            _initialise(data, account, password, durable=durable)
        _give(data, account)
    _refuse_other_version(data)
    admit_by_socket(data)
    remove_stale_pid_file(data / "postmaster.pid")
    if give_up_superuser(data, account, password):
        say("its role is no superuser any more, and owns its database only")
    return data


def postgres_part(data: Path, account: ServerAccount, *, fsync: bool = True) -> StackPart:
    """The server as a part of the stack: on a Unix socket in its data folder, and on no port."""
    settings = {
        "listen_addresses": "",
        "port": POSTGRES_SOCKET.rpartition(".")[2],
        "unix_socket_directories": ".",  # where it is when it opens it; by its whole path it could not be reached
        "unix_socket_permissions": "0700",
        "max_connections": "200",
        "log_checkpoints": "off",
        "fsync": "on" if fsync else "off",
    }
    arguments = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    return StackPart(
        name="postgres",
        command=account.command("postgres", "-D", account.data_argument(data), *arguments),
        cwd=str(data),
        ready=Ready("log", "database system is ready to accept connections"),
        server=True,
        env=ENVIRONMENT,
        inherit_env=False,
        user=account.user,
        address=f"{data / POSTGRES_SOCKET}",
        stop_signal=2,  # SIGINT is PostgreSQL's fast shutdown: sessions are cut, data is flushed
        grace=30.0,
        pid_files=(str(data / "postmaster.pid"), str(data / f"{POSTGRES_SOCKET}.lock")),
    )


def admit_by_socket(data: Path) -> None:
    """Let clients in by the Unix socket, also to a cluster of a release that listened on a port alone.

    A server that runs reads the rules again when it is started again. Raises StackError.
    """
    rules = data / "pg_hba.conf"
    with folder_errors(data):
        text = rules.read_text(encoding="utf-8")
        if not text.startswith(_BY_SOCKET):  # the first rule that fits counts
            rules.write_text(_BY_SOCKET + text, encoding="utf-8")  # in place, so that it stays its account's


def remove_stale_pid_file(pid_file: Path) -> None:
    """Remove the file when the process it names is gone, or is another program that got the pid later."""
    try:
        pid = int(pid_file.read_text(encoding="utf-8").split("\n", 1)[0])
        in_use = Path(psutil.Process(pid).cwd()) == pid_file.parent
    except FileNotFoundError:
        return
    except psutil.AccessDenied:
        in_use = True
    except (psutil.Error, ValueError):
        in_use = False
    if not in_use:
        pid_file.unlink(missing_ok=True)


def _holds_cluster(data: Path) -> bool:
    """Whether there is something that may be data. Raises StackError when there is, and it is not whole."""
    version, control = data / "PG_VERSION", data / "global" / "pg_control"
    if version.exists() and control.exists():
        return True
    ours = [base for base in data.glob("base/*") if base.name.isdigit() and int(base.name) > _LAST_OF_INITDB]
    if not data.is_dir() or ours:
        raise StackError(f"{data} is not a whole PostgreSQL cluster, but may hold data: move it away and start again.")
    return False


def _refuse_other_version(data: Path) -> None:
    with folder_errors(data):
        version = (data / "PG_VERSION").read_text(encoding="utf-8").strip()
    if version != str(MAJOR_VERSION):
        raise StackError(
            f"{data} was made by PostgreSQL {version} and the embedded one is {MAJOR_VERSION}: "
            f"move it away to start empty, or dump it with PostgreSQL {version} first.",
        )


def _initialise(data: Path, account: ServerAccount, password: str, *, durable: bool) -> None:
    free = shutil.disk_usage(data.parent).free
    if free < _SPACE_NEEDED:
        raise StackError(
            f"The disk of {data.parent} has {free >> 20} MiB left and a new PostgreSQL needs {_SPACE_NEEDED >> 20}: "
            "free some, or set ROLLWAY_HOME to a folder on another disk.",
        )
    fresh = Path(tempfile.mkdtemp(prefix="initdb-", dir=data.parent))
    try:
        _give(fresh, account)
        _initdb(fresh, account, durable=durable)
        make_role(fresh, account, password)
        fresh.rename(data)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def _initdb(fresh: Path, account: ServerAccount, *, durable: bool) -> None:
    """Make a cluster whose superuser nobody can log in as: its password is forgotten at once."""
    with tempfile.TemporaryFile(dir=fresh.parent) as password_file:
        password_file.write(secrets.token_urlsafe(24).encode())
        password_file.seek(0)
        if account.user is not None:
            os.fchown(password_file.fileno(), account.user, account.user)
        options = [
            *("-D", account.data_argument(fresh), "-U", SUPERUSER, f"--pwfile=/dev/fd/{password_file.fileno()}"),
            *("--auth-local=reject", "--auth-host=scram-sha-256", "--encoding=UTF8", "--locale=C"),
            *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", *(() if durable else ("--no-sync",))),
        ]
        run_program(fresh, account, account.command("initdb", *options), pass_fds=(password_file.fileno(),))


def _give(data: Path, account: ServerAccount) -> None:
    """Make the folder its account's own; an earlier start may have been as another user."""
    owner = os.geteuid() if account.user is None else account.user
    if data.stat().st_uid == owner:
        return
    started = time.monotonic()
    for folder, folders, files in os.walk(data):
        for name in (*folders, *files):
            os.chown(Path(folder) / name, owner, owner, follow_symlinks=False)
        if time.monotonic() - started > 60:  # noqa: PLR2004
            raise StackError(f"{data} is too large to change its owner: run rollway as the user who made it.")
    os.chown(data, owner, owner)


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
    result = subprocess.run(  # noqa: S603 -- the wheel's own programs
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
    if result.returncode == 0 and "ERROR:" not in result.stderr and "FATAL:" not in result.stderr:
        return
    if "No space left on device" in result.stderr:
        raise StackError(f"There is no space left for {folder}: free some, or set ROLLWAY_HOME to another disk.")
    telling = [line for line in result.stderr.splitlines() if "error" in line.lower() or "FATAL" in line]
    reason = (telling or result.stderr.splitlines() or [f"exit code {result.returncode}"])[0]
    raise StackError(f"PostgreSQL's data folder {folder} cannot be prepared: {reason.strip()}.")


def _mark(data: Path, account: ServerAccount) -> None:
    with folder_errors(data):
        mark = data / _MARK
        mark.touch(mode=0o600)
        if account.user is not None:
            os.chown(mark, account.user, account.user)  # pg_basebackup copies each file, as the server
