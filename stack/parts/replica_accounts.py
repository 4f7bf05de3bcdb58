"""The accounts of replicas where root starts the stack, and what prevents one for each deployment."""

import os
import pwd
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from runtime.machine.path_access import closed_folder
from runtime.process.account_pool import AccountPool, NoAccountError
from runtime.process.accounts import EACH, REPLICA_USER, why_no_wall
from stack.home.folder import Home, project_root
from stack.home.server_settings import load_settings
from stack.stack_errors import StackError

_USUAL, _OTHERS = "ROLLWAY_REPLICA_USER", "ROLLWAY_REPLICA_USERS"
_PYTHON = sys.executable


def choose_replica_user(home: Home, last: str | None, say: Callable[[str], None]) -> str | None:
    """The usual account of replicas where nobody has named one: EACH, or "" where that cannot be.

    `last`: what it was at the last start. It is asked again while there is no account; a home of a release that knew
    none (None) keeps its way, since what its replicas read may be for root alone.
    """
    if last not in {None, "", REPLICA_USER}:
        return last
    why = what_stands_in_the_way(home)
    if why:
        say(f"run as {oneself()}: {why}" if not last else f"run as {last}, all of them: {why}")
        return last
    if last is None:
        say(f"run as root, as before; {_USUAL}={EACH} gives each deployment an account, {_USUAL}=root keeps it so")
        return last
    say(f"run as an account for each deployment, which cannot read this home; {_USUAL} names another")
    return EACH


def replica_user_here(home: Home, environ: Mapping[str, str]) -> str:
    """The account of replicas of the stack of this home, or of its next one; empty: the user who starts it."""
    settings = load_settings(home)
    saved = settings.replica_user if settings else ""
    if user := environ.get(_USUAL):
        return user
    return saved or "" if home.state_file.exists() else choose_replica_user(home, saved, lambda _: None) or ""


def what_stands_in_the_way(home: Home) -> str:
    """Why deployments can have no accounts here, with the remedy; empty where they can."""
    if why := _not_by_looking():
        return why
    try:
        number = AccountPool(home.root).reserve()
        _run_as(number, 'test -x "$0" && cd "$1"')
    except NoAccountError as error:
        return str(error)
    except (OSError, subprocess.SubprocessError) as error:
        return f"another user may not enter {project_root()}, or not run {_PYTHON} ({error})"
    return ""


def advice(home: Home) -> str:
    """What would give deployments accounts of their own, in a home whose stack has none; found by looking only."""
    settings = load_settings(home) if home.state_file.exists() else None
    if settings is None or settings.replica_user:
        return ""
    if why := _not_by_looking():
        return why
    if settings.replica_user is None:
        return f"'rollway down' and '{_USUAL}={EACH} rollway up' give each deployment an account"
    return "nothing prevents it any more: 'rollway restart' gives each deployment an account"


def _not_by_looking() -> str:
    if os.geteuid() != 0:
        return "only root gives replicas accounts of their own: 'sudo rollway up' does, or let them be containers"
    for path in (Path(_PYTHON), project_root()):
        if folder := closed_folder(path):
            return (
                f"another user may not enter {folder}, and {path} leads there: 'chmod o+x {folder}' lets it pass, "
                "or install Rollway in a folder that all may enter"
            )
    return ""


def refuse_replica_users(home: Home, environ: Mapping[str, str], postgres: int | None) -> None:
    """Raises StackError where a user of replicas owns a part of this stack. `postgres`: the account of that part.

    Workers may run under a user that is named: that says that there is no wall.
    """
    prepared = () if postgres is None else ("postgres",)  # whose it is until now, it need not stay
    for variable, user in _folders(environ):
        with suppress(KeyError):  # the start of a replica says it of a user that is not known
            uid = pwd.getpwnam(user).pw_uid
            if uid == os.geteuid():
                continue
            why = "runs PostgreSQL" if uid == postgres else why_no_wall(user, home.root, prepared)
            if why:
                raise StackError(
                    f"{variable} names {user!r}, who {why}: replicas of this user could take it over. Leave it out, so "
                    "that each deployment has an account of its own, or name a user that runs nothing else."
                )


def _folders(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for variable in (_USUAL, _OTHERS):
        yield from ((variable, name.strip()) for name in environ.get(variable, "").split(",") if name.strip())


def oneself() -> str:
    """The name of the user of this process, or its number."""
    with suppress(KeyError):
        return pwd.getpwuid(os.geteuid()).pw_name
    return f"user {os.geteuid()}"


def _run_as(number: int, words: str) -> None:
    """Run a line of the shell, given this Python and this folder. Raises OSError or SubprocessError."""
    command = ("/bin/sh", "-c", words, _PYTHON, project_root())
    subprocess.run(command, capture_output=True, check=True, user=number, group=number, extra_groups=[])  # noqa: S603 -- ours
