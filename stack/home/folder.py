"""The folder .rollway, and the place of each file of the stack in it."""

import os
import socket
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runtime.machine.path_access import why_not_trusted
from stack.stack_errors import StackError, folder_errors

_BIG_LOG = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Home:
    """The folder of one stack, absolute; nothing is made on disk before `create`."""

    root: Path

    @property
    def state_file(self) -> Path:
        """The state file: pids and addresses of what runs now."""
        return self.root / "stack.json"

    @property
    def servers_file(self) -> Path:
        """Ports and passwords of the embedded servers, kept from start to start."""
        return self.root / "servers.json"

    @property
    def lock_file(self) -> Path:
        """The lock that a running `up` or `down` holds."""
        return self.root / "run" / "up.lock"

    @property
    def run(self) -> Path:
        """Files that are needed only while something runs: the lock of `up` and `down`."""
        return self.root / "run"

    @property
    def postgres(self) -> Path:
        """The folder that holds PostgreSQL's data folder."""
        return self.root / "postgres"

    @property
    def valkey(self) -> Path:
        """Valkey's configuration and append-only file."""
        return self.root / "valkey"

    @property
    def envoy(self) -> Path:
        """Envoy's bootstraps and sockets."""
        return self.root / "envoy"

    @property
    def replicas_lock(self) -> Path:
        """The lock for starts and stops of replicas, as `runtime.process.record` names it."""
        return self.root / "replicas" / ".lock"

    def envoy_admin(self, part: str = "envoy") -> Path:
        """The Unix socket of the admin pages of this part's Envoy."""
        return self.envoy / f"{part}.sock"

    def log(self, part: str) -> Path:
        return self.root / "logs" / f"{part}.log"

    def create(self) -> None:
        """Make the folders, for their owner only. Raises StackError when that is not possible."""
        with folder_errors(self.root):
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (self.run, self.postgres, self.valkey, self.envoy, self.root / "logs"):
                folder.mkdir(mode=0o700, exist_ok=True)
            # mkdir of a folder that exists does not fail on a read-only mount: only a write does
            write_private(self.run / "writable", "")


def find_home(environ: Mapping[str, str]) -> Home:
    """The home that ROLLWAY_HOME names, else .rollway in the current folder.

    Raises StackError when somebody else could have written what is in it: its files say which processes to end.
    """
    home = Home(Path(environ.get("ROLLWAY_HOME") or ".rollway").expanduser().resolve())
    if why := why_not_trusted(home.root):
        raise StackError(f"{home.root} {why}, or set ROLLWAY_HOME to a folder of your own.")
    return home


def project_root() -> Path:
    """The folder that holds the packages `stack` and `tasks`: where workers and migrations run."""
    return Path(__file__).resolve().parents[2]


def write_private(path: Path, text: str) -> None:
    """Replace the file at once and for good, readable by its owner only. Raises OSError."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    fresh = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def open_log(path: Path) -> int:
    """A descriptor that appends to the log at `path`; a log over 10 MiB is first set aside as `.1`. Raises OSError."""
    if path.exists() and path.stat().st_size > _BIG_LOG:
        path.replace(path.with_name(f"{path.name}.1"))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def connected(path: Path, timeout: float) -> socket.socket:
    """A connection to the Unix socket there. Raises OSError.

    The name of one has 107 characters at most, and a home may lie deeper: so it is named from its folder.
    """
    connection = socket.socket(socket.AF_UNIX)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        connection.settimeout(timeout)
        connection.connect(f"/proc/self/fd/{folder}/{path.name}" if sys.platform == "linux" else str(path))
    except OSError:
        connection.close()
        raise
    finally:
        os.close(folder)
    return connection
