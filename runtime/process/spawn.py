"""Starting one replica process: its user, its log, its own session."""

import os
import subprocess
from pathlib import Path

from domain.revisions.command_words import filled_in
from domain.revisions.revision import RevisionSpec
from runtime.base import ReplicaRequest, ReplicaStartError
from runtime.process.accounts import Account


def spawn(
    request: ReplicaRequest, env: dict[str, str], log: Path, account: Account | None = None
) -> subprocess.Popen[bytes]:
    """Run the command in its own session, output appended to `log`. Raises ReplicaStartError.

    `account`: as whom; without one as the user of this process. The log stays this process's own: it is opened here.
    """
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
                filled_in(spec.command, env),
                env=env,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=account.groups if account else None,
            )
        except (OSError, ValueError) as error:
            raise ReplicaStartError(_why_not(request, account, error)) from error


def _where(spec: RevisionSpec) -> str:
    """Where a command with a path of its own was looked for."""
    command = (spec.command or ("",))[0]
    if "/" not in command or Path(command).is_absolute():
        return ""
    unset = "" if spec.working_directory else ", as no working_directory is set"
    return f": it is looked for in {spec.working_directory or Path.cwd()}{unset}"


def _why_not(request: ReplicaRequest, account: Account | None, error: OSError | ValueError) -> str:
    what = f"the command {(request.spec.command or ('',))[0]!r} of revision {request.revision!r}"
    match error:
        case FileNotFoundError():
            return f"{what} was not found on this host{_where(request.spec)}"
        case PermissionError():
            who = f" for the user {account.variables['USER']!r}, as whom it runs" if account else ""
            return f"{what} is not an executable file{who}"
        case OSError():
            return f"{what} cannot be started: {os.strerror(error.errno or 0)}"
    return f"{what} cannot be started: {error}"
