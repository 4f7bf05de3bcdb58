"""The environment of a replica: variables of Rollway's, and some of the worker's."""

import os
from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from runtime.process.accounts import Account
from runtime.process.process_table import KEEPER, keeper_of
from runtime.protocol import ReplicaRequest

INHERITED = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CUDA_*",
    "NVIDIA_*",
    "HIP_*",
    "ROCR_*",
)
"""Places of programs, languages, time zones, certificates and accelerators: no name here holds a secret."""

_NEVER = ("DATABASE_URL", "REDIS_URL", "ROLLWAY_*")
"""Variables that steer Rollway itself, which no pattern of a host hands on; a revision may set them."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Surroundings that all replicas of a host share. `also`: names of variables that they get besides INHERITED."""

    home: Path
    address: str
    also: Collection[str] = ()

    def variables(self, request: ReplicaRequest, port: int, account: Account | None) -> dict[str, str]:
        """The worker's variables of INHERITED and `also`, the account's, the revision's, then Rollway's for a replica.

        PORT and the ROLLWAY_* below cannot be overridden: by them a replica is found again. HOST is where proxies
        reach this machine; a revision whose service shall listen elsewhere sets its own.
        """
        variables = request.variables(self.address, port)
        found_by = {KEEPER: keeper_of(self.home), "ROLLWAY_ADDRESS": self.address}
        return {**inherited(self.also), **(account.variables if account else {}), **variables, **found_by}


def inherited(also: Collection[str] = ()) -> dict[str, str]:
    """The variables of this process that replicas get: INHERITED, and those that the patterns `also` name."""
    patterns = (*INHERITED, *also)
    return {
        name: value for name, value in os.environ.items() if _is_one_of(name, patterns) and not _is_one_of(name, _NEVER)
    }


def _is_one_of(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
