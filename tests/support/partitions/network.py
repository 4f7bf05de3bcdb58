"""Hosts with a network of their own each, joined by a router that can drop what goes between two of them.

    callers, Postgres, Redis  ── root's own namespace, an address for each
                │
              router ── api
              │  │  └── north
              │  └── west
              └── east

Packets are dropped on their way, by a rule of the router, so that both ends wait in vain, as with a broken switch: on
the host itself the kernel would refuse them at once.
"""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import pytest

HOSTS = ("east", "north", "west")
ROOT = ("callers", "postgres", "redis")
"""Who has an address in the namespace of the tests themselves."""
_PLACES = ("api", *HOSTS)
_LINK = 16
"""Addresses of a link: a /28 for each, the router last in it."""
_MISSING = "NOT ROOT OR NO PROGRAM ip HERE, SO CUT NETWORKS OF WHOLE HOSTS ARE NOT TESTED"


def ip(*words: str, said: str = "") -> str:
    """What iproute2 says. Raises CalledProcessError."""
    return subprocess.run(["ip", *words], input=said, capture_output=True, text=True, check=True).stdout


@dataclass
class Network:
    """Namespaces that are named after the installation's `number`, which nobody else on this machine has."""

    number: int
    cut: set[tuple[str, str]] = field(default_factory=set)
    """Pairs of places between which nothing comes through."""

    def address(self, place: str) -> str:
        """Where it is."""
        if place in ROOT:
            return self._at(1 + ROOT.index(place))
        return self._at(_LINK * (1 + _PLACES.index(place)) + 1)

    def namespace(self, place: str) -> str:
        """The name of its namespace."""
        return f"rollway{self.number}-{place}"

    def within(self, place: str) -> list[str]:
        """What to put before a command that shall run there."""
        return ["ip", "netns", "exec", self.namespace(place)]

    @property
    def whole(self) -> str:
        """All addresses."""
        return f"{self._at(0)}/24"

    def part(self, place: str, others: Sequence[str]) -> None:
        """Let nothing through between the place and the others, from now on."""
        for other in others:
            self._rule("add", place, other)
            self.cut.add((place, other))

    def heal(self, *others: str) -> None:
        """Let everything through again, or what goes to these."""
        for place, other in list(self.cut):
            if not others or other in others:
                self._rule("del", place, other)
                self.cut.discard((place, other))

    def build(self) -> None:
        """Make them all, and every link."""
        for place in ("router", *_PLACES):
            ip("netns", "add", self.namespace(place))
            ip("-n", self.namespace(place), "link", "set", "lo", "up")
        switch = ["tee", "/proc/sys/net/ipv4/ip_forward"]
        subprocess.run([*self.within("router"), *switch], input=b"1", capture_output=True, check=True)
        link = f"rollway{self.number}"
        ip("link", "add", link, "type", "veth", "peer", "name", "root", "netns", self.namespace("router"))
        ip("-n", self.namespace("router"), "addr", "add", f"{self._at(_LINK - 2)}/28", "dev", "root")
        ip("-n", self.namespace("router"), "link", "set", "root", "up")
        for place in ROOT:
            ip("addr", "add", f"{self.address(place)}/28", "dev", link)
        ip("link", "set", link, "up")
        ip("route", "add", self.whole, "via", self._at(_LINK - 2))
        for number, place in enumerate(_PLACES, 1):
            self._join(place, self._at(_LINK * (number + 1) - 2))

    def remove(self) -> None:
        """End what still runs there, and remove everything that `build` has made of it."""
        for place in (*_PLACES, "router"):
            with suppress(subprocess.CalledProcessError):
                for pid in ip("netns", "pids", self.namespace(place)).split():
                    with suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                ip("netns", "del", self.namespace(place))
        with suppress(subprocess.CalledProcessError):
            ip("link", "del", f"rollway{self.number}")

    def _at(self, last: int) -> str:
        return f"10.231.{self.number}.{last}"

    def _join(self, place: str, router: str) -> None:
        there, here = self.namespace(place), self.namespace("router")
        ip("-n", there, "link", "add", "eth0", "type", "veth", "peer", "name", place, "netns", here)
        for namespace, device, address in ((there, "eth0", self.address(place)), (here, place, router)):
            ip("-n", namespace, "addr", "add", f"{address}/28", "dev", device)
            ip("-n", namespace, "link", "set", device, "up")
        ip("-n", there, "route", "add", "default", "via", router)

    def _rule(self, change: str, place: str, other: str) -> None:
        for source, target in ((place, other), (other, place)):
            way = ("from", self.address(source), "to", self.address(target))
            ip("-n", self.namespace("router"), "rule", change, "pref", "100", *way, "blackhole")


@contextmanager
def networks() -> Iterator[Network]:
    """A network for a test, gone at its end; the test is skipped where none may be made."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip(_MISSING)
    network = Network(_free_number())
    try:
        network.build()
    except subprocess.CalledProcessError as error:
        network.remove()
        pytest.skip(f"NO NETWORKS MAY BE MADE HERE, SO CUT ONES ARE NOT TESTED: {error.stderr.strip()}")
    try:
        yield network
    finally:
        network.remove()


def _free_number() -> int:
    """One that no address and no namespace of this machine has: others may run the same tests."""
    taken = {address["local"] for each in json.loads(ip("-j", "addr")) for address in each["addr_info"]}
    names = ip("netns", "list")
    own = (os.getpid() + step for step in range(255))
    free = (
        number % 255
        for number in own
        if f"10.231.{number % 255}.1" not in taken and f"rollway{number % 255}-" not in names
    )
    return next(free)
