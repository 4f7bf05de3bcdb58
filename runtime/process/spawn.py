"""Starting one replica process: its account first; folder, environment, limits and command with its rights."""

import os
import shutil
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from domain.revisions.revision import RevisionSpec, filled_in
from runtime.base import ReplicaRequest, ReplicaStartError
from runtime.machine.closed import closed_folder
from runtime.process.accounts import Account
from runtime.process.limits import ProcessLimits
from runtime.process.table import KEEPER, keeper_of

_BEGIN = """
refuse() { printf %s "$1"; exit 126; }
umask "$1"
ulimit -c 0
ulimit -S -n "$2" && ulimit -H -n "$3"
[ -z "$4" ] || ulimit -u "$4" 2>/dev/null || ulimit -p "$4"
folder=$5; shift 5
[ -z "$folder" ] || cd -- "$folder" 2>/dev/null || refuse no-folder
case $1 in
  */*) [ -e "$1" ] || refuse no-command; [ -f "$1" ] && [ -x "$1" ] || refuse closed-command ;;
  *) command -v -- "$1" >/dev/null 2>&1 || refuse no-command ;;
esac
exec "$@" >&2
"""
"""Runs in the replica's process, as its account. Shells call the number of processes -u or -p. What it prints is why
the command is not run: until then standard output leads to who starts it, and to the log from then on."""


def spawn(
    request: ReplicaRequest, env: dict[str, str], output: int, account: Account | None, limits: ProcessLimits
) -> subprocess.Popen[bytes]:
    """Run the command in its own session, its output to that descriptor. Raises ReplicaStartError.

    `account`: as whom; without one as the user of this process. A folder that this account may not enter is refused,
    whatever this process may.
    """
    if request.spec.command is None:
        raise ReplicaStartError(f"revision {request.revision!r} has no command to run as a process")
    command = filled_in(request.spec.command, env)
    is_own = account is not None and account.is_own
    umask = "077" if is_own else "022"  # its files are its deployment's, as its processes are
    words = (umask, *limits.words(is_own=is_own), request.spec.working_directory or "")
    try:
        child = subprocess.Popen(  # noqa: S603  # running the user's command is the purpose
            ("/bin/sh", "-c", _BEGIN, "rollway", *words, *command),
            env=env,
            cwd="/" if request.spec.working_directory else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            start_new_session=True,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=account.groups if account else None,
        )
    except (OSError, ValueError) as error:
        raise ReplicaStartError(f"{_command_of(request)} cannot be started: {error}") from error
    if child.stdout is None:
        raise TypeError("a child that was given a pipe has one")
    with child.stdout as told:
        why_not = told.read().decode()
    if why_not:
        child.wait()
        way = _closed_on_the_way(why_not, request.spec, command[0], env) if account else ""
        raise ReplicaStartError(_in_words(why_not, request, account) + way)
    return child


def _command_of(request: ReplicaRequest) -> str:
    return f"the command {(request.spec.command or ('',))[0]!r} of revision {request.revision!r}"


def _in_words(why_not: str, request: ReplicaRequest, account: Account | None) -> str:
    who = f" for the user {account.variables['USER']!r}, as whom it runs" if account else ""
    match why_not:
        case "no-folder":
            folder = f"the working directory {request.spec.working_directory!r} of revision {request.revision!r}"
            return f"{folder} is not a folder on this host{who}; working_directory in its file names another"
        case "no-command":
            return f"{_command_of(request)} was not found on this host{who}{_where(request.spec)}"
    return f"{_command_of(request)} is not an executable file{who}"


def _closed_on_the_way(why_not: str, spec: RevisionSpec, command: str, env: Mapping[str, str]) -> str:
    """Say which folder keeps another user out, and what mends it: its command may lead where its path does not say."""
    folder = Path(spec.working_directory or Path.cwd())
    found = command if "/" in command else shutil.which(command, path=env.get("PATH"))
    closed = closed_folder(folder if why_not == "no-folder" else folder / (found or command))
    return f"; another user may not enter {closed}, where it leads: 'chmod o+x {closed}' lets it pass" if closed else ""


def _where(spec: RevisionSpec) -> str:
    """Say where a command with a path of its own was looked for."""
    command = (spec.command or ("",))[0]
    if "/" not in command or Path(command).is_absolute():
        return ""
    unset = "" if spec.working_directory else ", as no working_directory is set"
    return f": it is looked for in {spec.working_directory or Path.cwd()}{unset}"


INHERITED = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CUDA_*",
    "NVIDIA_*",
    "HIP_*",
    "ROCR_*",
)
"""Where programs, languages, time zones, certificates and accelerators are found: no name here holds a secret."""

_NEVER = ("DATABASE_URL", "REDIS_URL", "ROLLWAY_*")
"""What steers Rollway itself, which no pattern of a host hands on; a revision may set variables of these names."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Surroundings that all replicas of a host share. `also`: names of variables that they get besides INHERITED."""

    home: Path
    address: str
    also: Collection[str] = ()

    def variables(self, request: ReplicaRequest, port: int, account: Account | None) -> dict[str, str]:
        """The worker's of INHERITED and `also`, the account's, the revision's, then what Rollway tells a replica.

        PORT and the ROLLWAY_* below cannot be overridden: by them a replica is found again. HOST is where proxies
        reach this machine; a revision whose service shall listen elsewhere sets its own.
        """
        told = {"HOST": self.address, **request.env, **request.variables(port)}
        found_by = {KEEPER: keeper_of(self.home), "ROLLWAY_ADDRESS": self.address}
        return {**inherited(self.also), **(account.variables if account else {}), **told, **found_by}


def inherited(also: Collection[str] = ()) -> dict[str, str]:
    """Return what of this process's environment others get: INHERITED, and what the patterns `also` name."""
    patterns = (*INHERITED, *also)
    return {
        name: value for name, value in os.environ.items() if _is_one_of(name, patterns) and not _is_one_of(name, _NEVER)
    }


def _is_one_of(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
