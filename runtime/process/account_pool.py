"""Accounts for deployments: user numbers that nothing else on this machine has, one for each deployment of a home.

They need no line in /etc/passwd, so none is written there. A home takes a whole range at once, and notes in its own
folder which deployment has which number:

    /var/lib/rollway-accounts/1879048192 -> /srv/rollway     a range of this machine, and the home that has it
    /srv/rollway/accounts.json                               {"web": 1879048192, "other": 1879048193}

A number stays with the name of its deployment for ever: what a replica has written, the next ones read, and no others.
"""

import grp
import os
import pwd
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from pydantic import TypeAdapter, ValidationError

from runtime.machine.path_access import file_lock

REGISTRY = Path("/var/lib/rollway-accounts")
_PATIENCE_SECONDS = 15.0
_NAMES = TypeAdapter(dict[str, int])


class NoAccountError(Exception):
    """No account is available for a deployment; the message is half a sentence that says why."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """Numbers that are handed out in ranges of `size`."""

    numbers: range
    size: int

    def first_of(self, number: int) -> int:
        """The first number of the range of this number."""
        return number - (number - self.numbers.start) % self.size


# The first is what systemd's table of users leaves unused. Where only 65,536 users are mapped, as in many containers,
# it is those that people have on other machines.
POOLS = (Ranges(range(0x7000_0000, 0x7FFE_0000), 4096), Ranges(range(30_000, 60_000), 1000))


@dataclass(slots=True)
class AccountPool:
    """The accounts of the deployments of one home, on this machine. Only root hands them out."""

    home: Path
    registry: Path = REGISTRY
    _accounts: Mapping[str, int] = field(default_factory=dict)

    def number_of(self, deployment: str) -> int:
        """The number of this deployment's account, the same each time. Raises NoAccountError."""
        if deployment not in self._accounts:
            try:
                with file_lock(self.home / "accounts.lock", _PATIENCE_SECONDS):
                    self._accounts = self._with(deployment)
            except (OSError, ValidationError) as error:
                raise NoAccountError(f"{self._file} cannot be used ({error})") from error
        return self._accounts[deployment]

    def accounts(self) -> Mapping[str, int]:
        """The accounts of deployments that have been started here, by name."""
        try:
            return self._load()
        except (OSError, ValidationError):
            return {}

    def has(self, number: int, deployment: str) -> bool:
        """Whether this is the number of this deployment's account."""
        if deployment not in self._accounts:
            self._accounts = self.accounts()
        return self._accounts.get(deployment) == number

    def reserve(self) -> int:
        """A number of the home that runs nothing, for a trial: the home has a range from then on.

        Raises NoAccountError.
        """
        return (next(self._own_ranges(), None) or self._take_range()) + _pool_of_this_machine().size - 1

    def lent_to(self, home: Path, deployment: str) -> "AccountPool":
        """The accounts of another home: that number alone, for its one deployment. Raises NoAccountError."""
        number = self.reserve()
        other = AccountPool(home, self.registry, {deployment: number})
        other._write({deployment: number})
        return other

    @property
    def _file(self) -> Path:
        return self.home / "accounts.json"

    def _with(self, deployment: str) -> Mapping[str, int]:
        """Under the lock: the recorded accounts, with a number for this deployment."""
        pool = _pool_of_this_machine()
        recorded = self._load()
        owned_ranges = {
            first for first in {pool.first_of(number) for number in recorded.values()} if self._take_range(first)
        }
        accounts = {name: number for name, number in recorded.items() if pool.first_of(number) in owned_ranges}
        if deployment in accounts:
            return accounts
        used = set(accounts.values())
        ranges = [*self._own_ranges()]
        free = (n for first in ranges for n in range(first, first + pool.size - 1) if n not in used)
        accounts[deployment] = next(free, None) or self._take_range()
        self._write(accounts)
        return accounts

    def _own_ranges(self) -> Iterator[int]:
        pool = _pool_of_this_machine()
        for first, home in sorted(_ranges_in(self.registry).items()):
            if home == self.home and first in pool.numbers:
                yield first

    def _take_range(self, preferred: int | None = None) -> int:
        """Take a range for this home, the `preferred` one or any; 0 where another home has the preferred one."""
        pool = _pool_of_this_machine()
        try:
            self.registry.mkdir(mode=0o700, parents=True, exist_ok=True)
            with file_lock(self.registry / ".lock", _PATIENCE_SECONDS):
                ranges = _ranges_in(self.registry)
                if preferred is not None and preferred in ranges:
                    return preferred if ranges[preferred] == self.home else 0
                first = preferred if preferred is not None else _free_range(pool, ranges)
                (self.registry / str(first)).unlink(missing_ok=True)
                (self.registry / str(first)).symlink_to(self.home)
        except OSError as error:
            raise NoAccountError(f"{self.registry} cannot be written ({error})") from error
        return first

    def _load(self) -> Mapping[str, int]:
        try:
            return _NAMES.validate_json(self._file.read_bytes())
        except FileNotFoundError:
            return {}

    def _write(self, accounts: Mapping[str, int]) -> None:
        draft = self._file.with_suffix(".draft")
        with open(draft, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(_NAMES.dump_json(dict(accounts)))
        draft.replace(self._file)


def _ranges_in(registry: Path) -> dict[int, Path]:
    """The home of each range of this machine, by the first number of the range."""
    try:
        names = os.listdir(registry)  # noqa: PTH208  # strings are what is needed
    except (FileNotFoundError, NotADirectoryError):
        return {}
    ranges: dict[int, Path] = {}
    for name in names:
        with suppress(FileNotFoundError):  # another home has just taken it over
            ranges |= {int(name): (registry / name).readlink()} if name.isdigit() else {}
    return ranges


def _free_range(pool: Ranges, ranges: Mapping[int, Path]) -> int:
    """The first number of a free range, in which this machine knows no user and no group.

    Where all are taken, of one whose home is gone, if there is one. Raises NoAccountError.
    """
    ids = {number for user in pwd.getpwall() for number in (user.pw_uid, user.pw_gid)}
    ids |= {group.gr_gid for group in grp.getgrall()}
    strange = {pool.first_of(number) for number in ids if number in pool.numbers}
    firsts = [first for first in pool.numbers[:: pool.size] if first not in strange]
    free = (first for first in firsts if first not in ranges)
    unused = (first for first in firsts if first in ranges and _is_left(range(first, first + pool.size), ranges[first]))
    choice = next(free, None) or next(unused, None)
    if choice is None:
        raise NoAccountError(f"all {len(firsts)} ranges of accounts of this machine are taken")
    return choice


def _is_left(numbers: range, home: Path) -> bool:
    """Whether the home of this range is gone, and no process runs under its numbers."""
    return not home.exists() and not any(
        user in numbers for process in psutil.process_iter(["uids"]) for user in process.info["uids"] or ()
    )


def _pool_of_this_machine() -> Ranges:
    """The pool of numbers that this system may give to a process. Raises NoAccountError."""
    for pool in POOLS:
        if any(pool.numbers.start in mapped and pool.numbers.stop - 1 in mapped for mapped in _mapped()):
            return pool
    raise NoAccountError("this system may not use the users from 30,000 on, as /proc/self/uid_map says")


def _mapped() -> list[range]:
    """The user numbers of this system: all, except in a container that has a part of its host's."""
    try:
        rows = Path("/proc/self/uid_map").read_text().splitlines()
    except OSError:
        return [range(2**32)]
    spans = [tuple(int(word) for word in row.split()) for row in rows]
    return [range(first, first + count) for first, _, count in spans]
