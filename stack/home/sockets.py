"""The places of the Unix sockets of the embedded servers: in the home, which no other account enters."""

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stack.home.folder import Home
from stack.stack_errors import StackError

_LONGEST = 103
"""The longest name of a Unix socket, in bytes, on macOS; Linux allows four more."""
POSTGRES_SOCKET = ".s.PGSQL.5432"
"""PostgreSQL names its socket by a port, also where it listens on none."""
VALKEY_SOCKET = "valkey.sock"
_LINK = "home"
_PLACES = tuple(filter(None, (os.environ.get("XDG_RUNTIME_DIR"), "/run", "/tmp")))  # noqa: S108 -- made by mkdtemp
"""The first are cleaned when the machine starts, the last also of what was not used for long."""


@dataclass(frozen=True, slots=True)
class Sockets:
    """The paths by which clients name the sockets.

    `folder` is the home, or a link to it where a path through the home would be too long.
    """

    folder: Path

    @property
    def postgres(self) -> Path:
        """The folder of PostgreSQL's socket, for libpq's `host`: its data folder, the only one that it may enter."""
        return self.folder / "postgres" / "data"

    @property
    def valkey(self) -> Path:
        return self.folder / "valkey" / VALKEY_SOCKET

    @property
    def discovery(self) -> Path:
        """The socket of discovery, where Envoy gets its resources."""
        return self.folder / "run" / "discovery.sock"


def sockets_folder(home: Home, last: str = "") -> str:
    """The home, if the names of its sockets are short enough; else a folder with a link to it, made if need be.

    `last`: the folder of the start before, which is used again. Raises StackError when no folder can be made.
    """
    if _is_short_enough(home.root):
        return str(home.root)
    if last and _leads_to(Path(last), home):
        return last
    for place in (*_PLACES, tempfile.gettempdir()):
        with suppress(OSError):
            folder = Path(tempfile.mkdtemp(prefix="rollway-", dir=place))
            link = folder / _LINK
            link.symlink_to(home.root)
            if _is_short_enough(link):
                return str(link)
            forget_link(home, str(link))
    raise StackError(f"{home.root} is too long a name for sockets: set ROLLWAY_HOME to a folder with a shorter one.")


def forget_link(home: Home, folder: str) -> None:
    """Remove the folder with the link, where the sockets were named by one."""
    link = Path(folder)
    if folder and link != home.root and _leads_to(link, home):
        link.unlink()
        link.parent.rmdir()


def _is_short_enough(folder: Path) -> bool:
    return len(os.fsencode(Sockets(folder).postgres / POSTGRES_SOCKET)) <= _LONGEST


def _leads_to(link: Path, home: Home) -> bool:
    """Whether this is our own link, in a folder that nobody else may write in."""
    try:
        owner = link.parent.lstat()
        return owner.st_uid == os.geteuid() and not owner.st_mode & 0o077 and link.readlink() == home.root
    except OSError:
        return False
