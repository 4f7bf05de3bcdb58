"""Gives replicas their ports; who holds those that others need is ended, and told."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
import structlog

from runtime.base import ReplicaStartError
from runtime.machine.owned import may_be_of
from runtime.machine.ports import free_port

MOST_PORTS = 256
"""So many ports of the range may one process hold while others find none."""
_END_SECONDS = 2.0
_log = structlog.get_logger(__name__)
_TCP, _OTHERS = ("tcp", "tcp6"), ("unix", "udp", "udp6", "raw", "raw6", "netlink", "packet", "icmp", "icmp6")
_INODE = {"unix": 6, "netlink": 9, "packet": 8}
_INODE_OF_IP = 9


@dataclass(frozen=True, slots=True)
class Hoard:
    """A process of a deployment that holds more ports than it may."""

    deployment: str
    pid: int
    ports: int


def given_port(ports: range, is_reserved: Callable[[int], bool], accounts: Mapping[str, int]) -> int:
    """A port that nobody has, whoever tries to have them all. Raises ReplicaStartError.

    `accounts`: those of the deployments of this home, whose processes are ended that hold more than MOST_PORTS, once
    there is no port for others. Processes of anybody else are not ours to end.
    """
    port = free_port(ports, is_reserved)
    if port is None and (hoards := _end_hoards(ports, accounts)):
        for hoard in hoards:
            _log.warning("ended: it held ports that others need", **asdict(hoard))
        port = free_port(ports, is_reserved)
    if port is None:
        users = ", ".join(f"{count} of user {user}" for user, count in _users(ports).items())
        raise ReplicaStartError(f"no port from {ports.start} to {ports.stop - 1} is free on this host: {users}")
    return port


def _end_hoards(ports: range, accounts: Mapping[str, int]) -> list[Hoard]:
    found = list(_hoards(ports, {number: name for name, number in accounts.items()}))
    killed = []
    for hoard in found:
        with suppress(psutil.Error):
            process = psutil.Process(hoard.pid)
            process.kill()
            killed.append(process)
    psutil.wait_procs(killed, timeout=_END_SECONDS)
    return found


def _users(ports: range) -> Mapping[int, int]:
    """Count how many of these ports each user has, by its number, most first."""
    users = {port: int(row[7]) for name in _TCP for row in _rows(name) if (port := _port(row)) in ports}
    return dict(Counter(users.values()).most_common())


def _hoards(ports: range, deployments: Mapping[int, str]) -> Iterator[Hoard]:
    """A socket that is bound and does not listen yet holds its port, and stands in no table: it is counted too."""
    port_of = {row[_INODE_OF_IP]: _port(row) for name in _TCP for row in _rows(name)}
    others = {row[_INODE.get(name, _INODE_OF_IP)] for name in _OTHERS for row in _rows(name)}
    for pid in psutil.pids():
        deployment = _deployment_of(pid, deployments)
        if deployment is None:
            continue
        sockets = [inode for inode in sockets_of(pid) if inode not in others]
        listed = {port_of[inode] for inode in sockets if inode in port_of}
        held = len(listed & {*ports}) + sum(inode not in port_of for inode in sockets)
        if held > MOST_PORTS:
            yield Hoard(deployment, pid, held)


def _deployment_of(pid: int, deployments: Mapping[int, str]) -> str | None:
    if not may_be_of(pid, deployments.__contains__):
        return None
    with suppress(psutil.Error):
        return deployments.get(psutil.Process(pid).uids().real)
    return None


def sockets_of(pid: int) -> Iterator[str]:
    """The numbers of the sockets that a process has open."""
    folder = Path(f"/proc/{pid}/fd")
    with suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208  # there may be many
            with suppress(OSError):
                target = os.readlink(folder / name)  # noqa: PTH115
                if target.startswith("socket:["):
                    yield target.removeprefix("socket:[").removesuffix("]")


def _rows(table: str) -> Iterator[list[str]]:
    with suppress(OSError):
        yield from (
            row
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
            if len(row := line.split()) > _INODE.get(table, _INODE_OF_IP)
        )


def _port(row: list[str]) -> int:
    """0: 0100007F:1F90 00000000:0000 0A ..."""
    return int(row[1].rpartition(":")[2], 16)
