"""Limits of replica processes, set as each starts: what one may take of the host's shared resources."""

import resource
from dataclasses import dataclass, field
from pathlib import Path

from domain.installation.settings import LogLimits

MOST_FILES = 65_536
_SHARE = 4


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Limits of the replicas of a host.

    `processes`: of all replicas of a deployment that run as its own account, threads included; None: a quarter of what
    this machine has. `files`: open ones, of each process. `logs`: how large the log of each becomes.
    """

    processes: int | None = None
    files: int = MOST_FILES
    logs: LogLimits = field(default_factory=LogLimits)

    def to_set(self, *, is_own: bool) -> list[tuple[int, int, int]]:
        """The limits for `setrlimit`: which one, at first and at most. `is_own`: of an account of its deployment."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = self.files if hard == resource.RLIM_INFINITY else min(self.files, hard)
        first = most if soft == resource.RLIM_INFINITY else min(soft, most)
        processes = [(resource.RLIMIT_NPROC, count, count) for count in ([self._processes()] if is_own else [])]
        return [(resource.RLIMIT_CORE, 0, 0), (resource.RLIMIT_NOFILE, first, most), *processes]

    def _processes(self) -> int:
        most = self.processes or _machine_has() // _SHARE
        _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
        return most if hard == resource.RLIM_INFINITY else min(most, hard)


def _machine_has() -> int:
    """The processes and threads that this machine can have at once."""
    counts = [_number(f"/proc/sys/kernel/{name}") for name in ("threads-max", "pid_max")]
    return min((count for count in counts if count), default=_SHARE * 4096)


def _number(path: str) -> int:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return 0
