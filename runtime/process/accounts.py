"""As whom replica processes run: as the worker's own user, or as one of those that the installation names for it."""

import os
import pwd
from collections.abc import Collection
from dataclasses import dataclass

from runtime.base import ReplicaRequest, ReplicaStartError

REPLICA_USER = "rollway-replica"
"""The account that `rollway up` makes for replicas, and that nobody else uses."""
_SCOPED = "was added with a token for some deployments, so it does not run as the worker's own user"


@dataclass(frozen=True, slots=True)
class Accounts:
    """As whom replicas of a host may run. `usual`: whose revision names nobody; None: as the worker's own user."""

    usual: str | None = None
    others: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Account:
    """A user of this host, as a process needs to know it."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    variables: dict[str, str]


def account_of(request: ReplicaRequest, accounts: Accounts) -> Account | None:
    """As whom the replica runs; None for the worker's own user.

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
    try:
        known = pwd.getpwnam(user)
    except KeyError:
        raise ReplicaStartError(f"the user {user!r} of revision {revision!r} is not known on this host") from None
    if known.pw_uid == os.geteuid():
        if request.is_walled and user != accounts.usual:
            raise ReplicaStartError(f"revision {revision!r} {_SCOPED}, whom it names: {user!r}")
        return None
    if os.geteuid() != 0:
        raise ReplicaStartError(
            f"revision {revision!r} runs as the user {user!r}, and only a worker that runs as root can start it so"
        )
    named = {"HOME": known.pw_dir, "USER": user, "LOGNAME": user, "SHELL": known.pw_shell}
    return Account(known.pw_uid, known.pw_gid, tuple(os.getgrouplist(user, known.pw_gid)), named)


def uids_of(accounts: Accounts) -> frozenset[int]:
    """The uids of those users, as far as this host knows them, and of this process."""
    known = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
    users = {REPLICA_USER, accounts.usual, *accounts.others}
    return frozenset({os.geteuid(), *(uid for user, uid in known.items() if user in users)})
