"""The accounts of replica processes: the worker's own user, a named one, or one for each deployment."""

import os
import pwd
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runtime.process.account_pool import AccountPool, NoAccountError
from runtime.process.process_table import kill_account
from runtime.protocol import ReplicaRequest, ReplicaStartError

EACH = "@deployment"
"""In place of a user's name: each deployment runs under an account that no other deployment or home has."""
REPLICA_USER = "rollway-replica"
"""The account that all replicas of a machine once had."""
POSTGRES_USER = "rollway-postgres"
"""The account of the embedded PostgreSQL, where root starts it."""
_SCOPED = "was added with a token for some deployments, so it does not run as the worker's own user"
_RIGHT = f"name a user that runs nothing else, or {EACH} in ROLLWAY_REPLICA_USER and none in the revision"


@dataclass(frozen=True, slots=True)
class Accounts:
    """The accounts of a host's replicas. `usual`: for a revision that names no user; None: the worker's own user."""

    usual: str | None = None
    others: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Account:
    """A user of this host, as a process needs to know it. `is_own`: it runs nothing but replicas of one deployment."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    variables: dict[str, str]
    is_own: bool = False


def account_of(request: ReplicaRequest, accounts: Accounts, pool: AccountPool) -> Account | None:
    """The account of a replica; None for the worker's own user.

    Raises ReplicaStartError where its revision names a user that it may not, or this worker cannot become that one.
    """
    user, revision = request.spec.user or accounts.usual, request.revision
    if user is None:
        if request.is_walled:
            raise ReplicaStartError(f"revision {revision!r} {_SCOPED}, and ROLLWAY_REPLICA_USER names no other one")
        return None
    if user not in {accounts.usual, *accounts.others}:
        raise ReplicaStartError(
            f"revision {revision!r} runs as the user {user!r}, whom ROLLWAY_REPLICA_USERS of this host does not name"
        )
    if user == EACH:
        return _own_account(request, pool)
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise ReplicaStartError(f"the user {user!r} of revision {revision!r} is not known on this host") from None
    if entry.pw_uid == os.geteuid():
        if request.is_walled and user != accounts.usual:
            raise ReplicaStartError(f"revision {revision!r} {_SCOPED}, whom it names: {user!r}")
        return None
    if os.geteuid() != 0:
        raise ReplicaStartError(f"revision {revision!r} runs as the user {user!r}, and {_ROOT} can start it so")
    if why := why_no_wall(user, pool.home):
        field = "`user` of the revision" if request.spec.user else "ROLLWAY_REPLICA_USER"
        raise ReplicaStartError(f"revision {revision!r} runs as the user {user!r} ({field}), who {why}: {_RIGHT}")
    variables = {"HOME": entry.pw_dir, "USER": user, "LOGNAME": user, "SHELL": entry.pw_shell}
    return Account(entry.pw_uid, entry.pw_gid, tuple(os.getgrouplist(user, entry.pw_gid)), variables)


_ROOT = "only a worker that runs as root"


def _own_account(request: ReplicaRequest, pool: AccountPool) -> Account:
    if os.geteuid() != 0:
        raise ReplicaStartError(f"ROLLWAY_REPLICA_USER is {EACH}, and {_ROOT} can start replicas so")
    try:
        number = pool.number_of(request.deployment)
    except NoAccountError as error:
        raise ReplicaStartError(f"there is no account for {request.deployment!r} on this host: {error}") from error
    name = f"rollway-{number}"
    variables = {"HOME": "/nonexistent", "USER": name, "LOGNAME": name, "SHELL": "/usr/sbin/nologin"}
    return Account(number, number, (), variables, is_own=True)


def why_no_wall(user: str, home: Path, besides: Collection[str] = ()) -> str:
    """What of Rollway's belongs to this user, so that its replicas could take that over; empty where nothing does.

    Folders of the home that are named in `besides` are not looked at. Raises KeyError for a user that is not known.
    """
    uid = pwd.getpwnam(user).pw_uid
    with suppress(KeyError):
        if uid == pwd.getpwnam(POSTGRES_USER).pw_uid:
            return "runs PostgreSQL"
    writable = (path for path in _parts_of(home, besides) if _owner(path) == uid)
    part = next(writable, None)
    return f"owns {part}" if part else ""


def _parts_of(home: Path, besides: Collection[str]) -> Iterator[Path]:
    """The home, its folders and files, and their content except for the replicas' own."""
    yield home
    for part in _inside(home):
        if part.name not in besides:
            yield part
            yield from _inside(part) if part.name not in {"logs", "replicas"} else ()


def _inside(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []


def _owner(path: Path) -> int | None:
    with suppress(OSError):
        return path.lstat().st_uid
    return None


@dataclass(frozen=True, slots=True)
class Owners:
    """The users whose processes count as replicas: shared ones, and the deployment's own account."""

    shared: frozenset[int]
    pool: AccountPool

    @classmethod
    def of(cls, accounts: Accounts, home: Path, pool: AccountPool | None = None) -> "Owners":
        """The owners on a host with those accounts, as far as it knows them, and the user of this process."""
        uids = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
        users = {REPLICA_USER, accounts.usual, *accounts.others}
        shared = frozenset({os.geteuid(), *(uid for user, uid in uids.items() if user in users)})
        return cls(shared, pool or AccountPool(home))

    def end_account_of(self, deployment: str) -> None:
        """End everything that runs under the account of a deployment, if it has had one."""
        if number := self.pool.accounts().get(deployment):
            kill_account(number)

    def may_be(self, uid: int, deployment: str) -> bool:
        """Whether a process of this user can be a replica of that deployment."""
        return uid in self.shared or self.pool.has(uid, deployment)
