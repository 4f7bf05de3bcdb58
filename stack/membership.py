"""The membership of a host that joined an installation on other machines: its record, its files and its workers.

    started by     record and environment           workers
    systemd        /etc/rollway, which is root's    rollway-worker@1, @2, ..., as `rollway units` writes them
    a supervisor   the home                         as `rollway up` starts them, without servers and proxy

The record names each file before the file is written. So a join that was cut off continues, and leaving removes
exactly the files that joining wrote.
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from domain.installation.host_invitation import as_lines, in_lines
from stack import units
from stack.down import down
from stack.home.folder import Home, find_home, write_private
from stack.home.stack_state import read_state
from stack.parts.processes import ProcessList, rollway_processes, worker_processes
from stack.prepare import Say, UpRequest
from stack.stack_errors import StackError, folder_errors
from stack.up import up

SYSTEM_FOLDER, SYSTEM_HOME = Path("/etc/rollway"), Path("/var/lib/rollway")
"""The folder with the environment of the units, and the home of their workers."""
UNITS = Path("/etc/systemd/system")
_RECORD, _ENVIRONMENT = "host.json", "environment"
_OF_WORKERS = ("rollway-worker@.service", "rollway.target")
_LEFT_BEHIND = (
    *("installation", "accounts.json", "accounts.lock", "stack.json", "servers.json"),
    *("logs", "replicas", "run", "postgres", "valkey", "envoy"),
)
"""The files and folders that workers, replicas and a supervisor leave in a home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """The record, which is in `folder`. `invitation`: the proof that this machine has shown; `machine`: its number.

    `user`: the account of the units. `makes_home`, `makes_user`: whether joining made the home and the account.
    `files`: those that joining wrote, or was about to write. `is_complete`: all files are written.
    """

    started_by: Literal["systemd", "supervisor"]
    home: Path
    host: str
    address: str = ""
    invitation: str
    machine: str
    workers: int
    user: str = ""
    makes_home: bool = False
    makes_user: bool = False
    files: tuple[Path, ...] = ()
    is_complete: bool = False

    @property
    def folder(self) -> Path:
        return SYSTEM_FOLDER if self.started_by == "systemd" else self.home

    @property
    def environment_file(self) -> Path:
        return self.folder / _ENVIRONMENT

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its workers, from their file. Raises StackError."""
        with folder_errors(self.folder):
            return in_lines(self.environment_file.read_text(encoding="utf-8"))

    @property
    def units(self) -> list[str]:
        return [f"rollway-worker@{number}.service" for number in range(1, self.workers + 1)]

    @property
    def log(self) -> str:
        """A clause that names the log in which its first worker says why it does not start."""
        if self.started_by == "systemd":
            return f"'journalctl -u {self.units[0]}' says why"
        return f"{Home(self.home).log('worker1')} says why"


_RECORDS = TypeAdapter(Membership)


def systemd_runs_here() -> bool:
    """Whether systemd runs this machine, and this user may start units."""
    return Path("/run/systemd/system").is_dir() and os.geteuid() == 0


def membership_here(environ: Mapping[str, str]) -> Membership | None:
    """The record of this machine, in the home or for its units; None where it did not join. Raises StackError."""
    return read_record(find_home(environ).root) or read_record(SYSTEM_FOLDER)


def read_record(folder: Path) -> Membership | None:
    """The record in this folder, or None. Raises StackError where it is damaged."""
    path = folder / _RECORD
    try:
        with folder_errors(folder):
            return _RECORDS.validate_json(path.read_bytes()) if path.exists() else None
    except ValidationError:
        raise StackError(f"{path} is damaged: correct it by hand, or remove it with the files that it names.") from None


def keep_record(member: Membership) -> Membership:
    """Write the record. Raises StackError."""
    with folder_errors(member.folder):
        if not member.folder.exists():
            member.folder.mkdir(parents=True, mode=0o755 if member.started_by == "systemd" else 0o700)
        write_private(member.folder / _RECORD, _RECORDS.dump_json(member, indent=2).decode())
    return member


def refuse_another_stack(home: Path) -> None:
    """Raises StackError where the home has a stack of its own, whose workers make this machine a host already."""
    if read_state(Home(home)) is not None:
        raise StackError(
            f"{home} has a stack of Rollway, whose workers make this machine a host already: end it with 'rollway "
            "down', or name another folder with ROLLWAY_HOME."
        )


def write_for(member: Membership, environment: Mapping[str, str], files: Mapping[str, str], address: str) -> Membership:
    """Write its environment, the files that variables name, and its units. Raises StackError.

    A file that is there already, and that joining did not write, is refused and not touched.
    """
    paths = {variable: member.folder / variable.lower().removeprefix("rollway_") for variable in files}
    lines = as_lines({**environment, **{variable: str(path) for variable, path in paths.items()}})
    texts = {path: files[variable] for variable, path in paths.items()}
    if member.started_by == "systemd":
        member = _with_account(member)
        unit_files = units.files(member.user, str(member.environment_file))
        texts |= {UNITS / name: unit_files[name] for name in _OF_WORKERS}
    for path, text in {**texts, member.environment_file: lines}.items():
        member = _write_file(member, path, text)
    if member.started_by == "systemd":
        for path in paths.values():  # workers read them
            shutil.chown(path, member.user, member.user)
    return keep_record(replace(member, address=address, is_complete=True))


def _write_file(member: Membership, path: Path, text: str) -> Membership:
    if path.exists() and path not in member.files:
        raise StackError(
            f"{path} exists, and 'rollway hosts join' did not write it: move it away, if nothing here needs it."
        )
    member = keep_record(replace(member, files=tuple(dict.fromkeys((*member.files, path)))))
    with folder_errors(path.parent):
        write_private(path, text)
    return member


def _with_account(member: Membership) -> Membership:
    """The record, after making the account of the units where there is none."""
    try:
        pwd.getpwnam(member.user)
    except KeyError:
        member = keep_record(replace(member, makes_user=True))
        _run("useradd", "--system", "--home-dir", str(member.home), member.user)
    return member


def start(member: Membership, say: Say) -> None:
    """Start those of its workers that do not run. Raises StackError."""
    if member.started_by == "systemd":
        _run("systemctl", "daemon-reload")
        _run("systemctl", "enable", "--now", "rollway.target", *member.units)
        return
    request, processes = as_member(UpRequest(home=Home(member.home), environ=os.environ, workers=member.workers))
    up(request, say, processes)


def as_member(request: UpRequest) -> tuple[UpRequest, ProcessList]:
    """The request and the processes of `rollway up` in a home: on a host that joined, only its workers."""
    member = read_record(request.home.root)
    if member is None or not member.is_complete:
        return request, rollway_processes
    environ = {**request.environ, **member.environment, "ROLLWAY_ENVOY": "off"}
    return replace(request, environ=environ, workers=request.workers or member.workers), worker_processes


def stop(member: Membership, say: Say) -> None:
    """Stop its workers, and let no reboot start them. Raises StackError."""
    if member.started_by == "systemd":
        if (UNITS / _OF_WORKERS[0]).exists():
            _run("systemctl", "disable", "--now", *member.units, "rollway.target")
        return
    down(Home(member.home), say)


def remove(member: Membership) -> list[Path]:
    """Remove what joining wrote; returns what is left in a home that joining made. Raises StackError."""
    with folder_errors(member.folder):
        for path in member.files:
            path.unlink(missing_ok=True)
        if member.makes_home:
            _clear(member.home)
    if member.started_by == "systemd":
        _run("systemctl", "daemon-reload")
        if member.makes_user:
            _run("userdel", member.user)
    with folder_errors(member.folder):
        (member.folder / _RECORD).unlink(missing_ok=True)  # last: until then `leave` can be repeated
        for folder in (member.folder, *([member.home] if member.makes_home else [])):
            with suppress(OSError):  # the folder has other files
                folder.rmdir()
    return sorted(member.home.iterdir()) if member.makes_home and member.home.exists() else []


def _clear(home: Path) -> None:
    for path in (home / name for name in _LEFT_BEHIND):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _run(*command: str) -> None:
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"  # useradd is there, and not on every PATH
    environment = {**os.environ, "PATH": path}
    try:
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 -- ours
    except OSError as error:
        raise StackError(f"'{command[0]}' cannot be run here: {error.strerror}.") from None
    if result.returncode:
        why = result.stderr.strip().rpartition("\n")[2] or f"exit code {result.returncode}"
        raise StackError(f"'{' '.join(command)}' failed: {why}.")
