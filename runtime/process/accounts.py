"""As whom replica processes run: as the worker's own user, or as one of those that the installation names for it."""

import os
import pwd
from collections.abc import Iterable
from dataclasses import dataclass

from runtime.base import ReplicaRequest, ReplicaStartError


@dataclass(frozen=True, slots=True)
class Account:
    """A user of this host, as a process needs to know it."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    variables: dict[str, str]


def account_of(request: ReplicaRequest, users: Iterable[str]) -> Account | None:
    """As whom the replica runs, of the `users` that it may; None for the worker's own user.

    Raises ReplicaStartError where its revision names another user and this worker may not, or cannot, become that one.
    """
    user, revision = request.spec.user, request.revision
    if user is None:
        return None
    if user not in set(users):
        raise ReplicaStartError(
            f"revision {revision!r} runs as the user {user!r}, whom ROLLWAY_REPLICA_USERS of this host does not name"
        )
    try:
        known = pwd.getpwnam(user)
    except KeyError:
        raise ReplicaStartError(f"the user {user!r} of revision {revision!r} is not known on this host") from None
    if known.pw_uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise ReplicaStartError(
            f"revision {revision!r} runs as the user {user!r}, and only a worker that runs as root can start it so"
        )
    named = {"HOME": known.pw_dir, "USER": user, "LOGNAME": user, "SHELL": known.pw_shell}
    return Account(known.pw_uid, known.pw_gid, tuple(os.getgrouplist(user, known.pw_gid)), named)


def uids_of(users: Iterable[str]) -> frozenset[int]:
    """The uids of these users, as far as this host knows them, and of this process."""
    known = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
    return frozenset({os.geteuid(), *(known[user] for user in users if user in known)})
