"""Whose a home and a Redis are: the id of an installation, in a file and under a key, written once."""

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from redis import Redis

from domain.errors import WrongInstallationError
from domain.installation import HOME_FILE, REDIS_KEY
from tasks.settings import KEY_PREFIX

WRONG_INSTALLATION = 78
"""The exit code of a process that refuses to begin: EX_CONFIG of sysexits.h. Starting it again changes nothing."""

_KEY = f"{KEY_PREFIX}{REDIS_KEY}"


def owner_of_home(home: Path | None) -> UUID | None:
    """The installation of this home; None for one that is of nobody yet. Raises WrongInstallationError."""
    if home is None:
        return None
    try:
        return _uuid((home / HOME_FILE).read_text(encoding="utf-8"), f"the file {home / HOME_FILE}")
    except FileNotFoundError:
        return None


def owner_of_redis(client: Redis) -> UUID | None:
    """The installation whose messages this Redis carries; None before the first. Raises WrongInstallationError."""
    found = client.get(_KEY)
    return _uuid(found.decode(errors="replace"), f"the key {_KEY!r} of Redis") if isinstance(found, bytes) else None


def take_over_home(home: Path, installation: UUID) -> None:
    """Make a home that is of nobody yet this installation's. The file is there wholly or not at all."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if (home / HOME_FILE).exists():
        return
    with tempfile.NamedTemporaryFile("w", dir=home, encoding="utf-8") as draft, suppress(FileExistsError):
        draft.write(f"{installation}\n")
        draft.flush()
        (home / HOME_FILE).hardlink_to(draft.name)


def take_over_redis(client: Redis, installation: UUID) -> None:
    """Make a Redis that is of nobody yet this installation's."""
    client.set(_KEY, str(installation), nx=True)


def refuse_to_begin(why: str) -> None:
    """End this process, from whichever of its threads, with one sentence and its own code."""
    print(f"Rollway does not begin: {why}", file=sys.stderr, flush=True)  # noqa: T201  (logging may not be set up yet)
    os._exit(WRONG_INSTALLATION)


def _uuid(text: str, where: str) -> UUID:
    try:
        return UUID(text.strip())
    except ValueError:
        raise WrongInstallationError(f"{where} holds no id of an installation: remove it") from None
