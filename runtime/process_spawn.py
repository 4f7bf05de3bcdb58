"""Starting one replica process: its environment, its log, its own session."""

import os
import subprocess
from pathlib import Path

from runtime.base import ReplicaRequest, ReplicaStartError

_FOREIGN_PREFIXES = ("ROLLWAY_", "CELERY_", "FLOWER_", "PG")
_FOREIGN_NAMES = frozenset({"DATABASE_URL", "REDIS_URL", "BROKER_URL"})


def replica_environment(request: ReplicaRequest, home: Path, address: str, port: int) -> dict[str, str]:
    """The worker's environment without Rollway's own settings, then the revision's, then what Rollway tells a replica.

    Left out: DATABASE_URL, REDIS_URL and BROKER_URL, everything CELERY_*, FLOWER_* and PG* (libpq's PGPASSWORD and its
    kin), because they hold the passwords of Rollway's own stores, and ROLLWAY_*, which are its own settings. A revision
    that needs a variable of such a name sets it in its `env`; PORT and the ROLLWAY_* below cannot be overridden. HOST
    is where proxies reach this machine; a revision whose service shall listen elsewhere sets its own.
    """
    inherited = {name: value for name, value in os.environ.items() if not _is_rollways_own(name)}
    found_by = {"ROLLWAY_HOME": str(home), "ROLLWAY_ADDRESS": address}
    return inherited | {"HOST": address} | request.spec.env | request.variables(port) | found_by


def spawn(request: ReplicaRequest, env: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Run the command in its own session, output appended to `log`. Raises ReplicaStartError."""
    spec = request.spec
    if spec.command is None:
        raise ReplicaStartError(f"revision {request.revision!r} has no command to run as a process")
    folder = spec.working_directory
    if folder is not None and not Path(folder).is_dir():
        message = f"the working directory {folder!r} of revision {request.revision!r} is not a folder on this host"
        raise ReplicaStartError(message)
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with log.open("ab") as output:
        try:
            return subprocess.Popen(  # noqa: S603  # running the user's command is the purpose
                spec.command,
                env=env,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ReplicaStartError(_why_not(request, error)) from error


def tail(log: Path, lines: int) -> str:
    """The last `lines` lines of a file, of its last megabyte at most; empty when there is none."""
    if lines <= 0:
        return ""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 2**20))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def _is_rollways_own(name: str) -> bool:
    return name in _FOREIGN_NAMES or name.startswith(_FOREIGN_PREFIXES)


def _why_not(request: ReplicaRequest, error: OSError | ValueError) -> str:
    what = f"the command {(request.spec.command or ('',))[0]!r} of revision {request.revision!r}"
    match error:
        case FileNotFoundError():
            return f"{what} was not found on this host"
        case PermissionError():
            return f"{what} is not an executable file"
        case OSError():
            return f"{what} cannot be started: {os.strerror(error.errno or 0)}"
    return f"{what} cannot be started: {error}"
