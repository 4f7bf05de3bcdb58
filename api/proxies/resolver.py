"""Looks up replicas whose address is a name, because the proxies' tables hold IP addresses only."""

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from ipaddress import ip_address

from domain.revisions.address import why_no_replica
from domain.traffic.snapshot import DeploymentInTraffic, TrafficSnapshot
from traffic.routing_table import read_address

_RETRY_SECONDS = 10.0
_THREADS = 4


class Names:
    """Looks names up outside the reading of tables, so that a slow name server delays nobody else.

    A replica whose name is not known yet is left out of the table; one that is no longer found keeps its last address.
    """

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._wanted: frozenset[str] = frozenset()
        self._new = asyncio.Event()
        self._threads = ThreadPoolExecutor(_THREADS, "names")  # not those that read tables
        self._loop = asyncio.get_running_loop()

    def in_place(self, snapshot: TrafficSnapshot) -> TrafficSnapshot:
        """The snapshot with known names replaced. May be called in any thread."""
        names = frozenset(
            name for deployment in snapshot.deployments for route in deployment.routes if (name := _name(route.address))
        )
        before, self._wanted = self._wanted, names
        if names - before:
            self._loop.call_soon_threadsafe(self._new.set)
        if not names:
            return snapshot
        deployments = tuple(self._in_place(deployment) for deployment in snapshot.deployments)
        return replace(snapshot, deployments=deployments)

    def _in_place(self, deployment: DeploymentInTraffic) -> DeploymentInTraffic:
        if not any(map(_name, (route.address for route in deployment.routes))):
            return deployment
        routes = (replace(route, address=self._with_ip(route.address)) for route in deployment.routes)
        return replace(deployment, routes=tuple(routes))

    async def run(self, on_change: Callable[[], None]) -> None:
        """Look up the wanted names, at once when they are new and then every ten seconds, until cancelled."""
        looking: dict[str, asyncio.Task[None]] = {}
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._new.wait(), _RETRY_SECONDS)
            self._new.clear()
            self._known = {name: ip for name, ip in self._known.items() if name in self._wanted}
            looking = {name: task for name, task in looking.items() if not task.done()}
            for name in self._wanted - looking.keys():
                looking[name] = asyncio.create_task(self._look_up(name, on_change))

    async def _look_up(self, name: str, on_change: Callable[[], None]) -> None:
        with suppress(OSError, UnicodeError):
            look_up = partial(socket.getaddrinfo, name, None, type=socket.SOCK_STREAM)
            addresses = await self._loop.run_in_executor(self._threads, look_up)
            ips = [ip for *_, address in addresses if not why_no_replica(ip_address(ip := str(address[0])))]
            if ips and self._known.get(name) not in ips:
                # the lowest IPv4 address first: so that every server chooses the same
                self._known[name] = min(ips, key=lambda ip: (":" in ip, ip))
                on_change()

    def _with_ip(self, address: str) -> str:
        ip = self._known.get(_name(address) or "")
        if ip is None:
            return address
        port = address.rpartition(":")[2]
        return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


@lru_cache(maxsize=65_536)
def _name(address: str) -> str | None:
    """The name in "name:port", None for an IP address or nonsense."""
    host, _, port = address.rpartition(":")
    try:
        read_address(address)
    except ValueError:
        return host if host and ":" not in host and port.isdigit() else None
    return None
