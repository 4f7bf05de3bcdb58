"""The listening TCP sockets of this machine, with their users: at a free port any user may listen.

Linux is asked by a netlink socket for those that listen alone. Its files of all connections say the same: to read the
one of IPv6 it looks through all that there are, which takes milliseconds, so they are for where it does not answer.
"""

import ipaddress
import socket
import struct
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

_ASK, _ANSWERS, _DONE = 20, 20, 3
_DUMP = 0x301
_DIAGNOSES = 4
_LISTENING = 1 << 10
_HEAD = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI48x")
_MESSAGE = struct.Struct("=B3x2s2x16s28x12xII")
# family; port and address, as they travel; user and number of the socket
_FAMILIES = {socket.AF_INET: 4, socket.AF_INET6: 16}
_ANSWER_SECONDS = 1.0
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENS = "0A"
_PIECE = 16_384
_AGE_SECONDS = 0.5
_AGE_OF_A_MISS_SECONDS = 0.05
"""A socket that is not in the table may have begun to listen since."""

_IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class ListeningSocket:
    """A socket that listens at an address: its user, and the inode by which its holders are found."""

    host: _IpAddress
    port: int
    uid: int
    inode: str

    def answers(self, host: str) -> bool:
        """Whether it may get connections to that host; one that is a name may be any address."""
        address = _ip_of(host)
        if address is None:
            return True
        is_any = self.host.is_unspecified and self.host.version >= address.version  # of IPv6: of both
        return is_any or self.host == address


@dataclass(slots=True)
class ListenerTable:
    """The last reading, used again for a moment. Several threads may share it."""

    _by_port: Mapping[int, Sequence[ListeningSocket]] | None = None
    _read_at: float = float("-inf")
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def at(self, host: str, port: int) -> Sequence[ListeningSocket] | None:
        """The sockets that may get connections to that address; None where the system does not say."""
        with self._lock:
            self._renew(_AGE_SECONDS)
            if self._by_port is not None and port not in self._by_port:
                self._renew(_AGE_OF_A_MISS_SECONDS)
            if self._by_port is None:
                return None
            return [listener for listener in self._by_port.get(port, ()) if listener.answers(host)]

    def _renew(self, age: float) -> None:
        now = time.monotonic()
        if now - self._read_at > age:
            self._by_port, self._read_at = listeners(), now


def listeners() -> Mapping[int, Sequence[ListeningSocket]] | None:
    """The listening sockets by port; None where the system does not say."""
    by_port: dict[int, list[ListeningSocket]] = defaultdict(list)
    for look in (_query, _scan):
        by_port.clear()
        try:
            for listener in look():
                by_port[listener.port].append(listener)
        except (OSError, AttributeError):  # this system has no such socket, or no such file
            continue
        return by_port
    return None


def _query() -> Iterator[ListeningSocket]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _DIAGNOSES) as kernel:
        kernel.settimeout(_ANSWER_SECONDS)
        for family in _FAMILIES:
            request = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, _LISTENING)
            kernel.send(_HEAD.pack(_HEAD.size + len(request), _ASK, _DUMP, 0, 0) + request)
            yield from _answers(kernel)


def _answers(kernel: socket.socket) -> Iterator[ListeningSocket]:
    """Raises OSError where the kernel answers with an error."""
    while True:
        data = kernel.recv(65_536)
        while data:
            length, kind, *_ = _HEAD.unpack_from(data)
            if kind == _DONE:
                return
            if kind != _ANSWERS:
                raise OSError("the kernel does not tell who listens")
            family, port, host, uid, inode = _MESSAGE.unpack_from(data, _HEAD.size)
            address = _plain(ipaddress.ip_address(host[: _FAMILIES[family]]))
            yield ListeningSocket(address, int.from_bytes(port), uid, str(inode))
            data = data[(length + 3) & ~3 :]


def _scan() -> Iterator[ListeningSocket]:
    for table in _TABLES:
        for row in _listening_rows(table):
            host, port = row[1].split(":")
            yield ListeningSocket(_address(host), int(port, 16), int(row[7]), row[9])


def _listening_rows(table: Path) -> Iterator[list[str]]:
    """The rows of listening sockets come first, so thousands of connections are not read.

    0: 0100007F:1F90 00000000:0000 0A ...
    """
    rest = ""
    with table.open(encoding="ascii") as file:
        file.readline()
        while piece := file.read(_PIECE):
            *lines, rest = (rest + piece).split("\n")
            for line in lines:
                row = line.split()
                if row[3] != _LISTENS:
                    return
                yield row


def _address(text: str) -> _IpAddress:
    """Words of four bytes, each in the order of this machine."""
    data = bytes.fromhex(text)
    words = (data[first : first + 4] for first in range(0, len(data), 4))
    return _plain(ipaddress.ip_address(b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)))


@cache
def _ip_of(host: str) -> _IpAddress | None:
    try:
        return _plain(ipaddress.ip_address(host))
    except ValueError:
        return None


def _plain(address: _IpAddress) -> _IpAddress:
    return (address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None) or address
