"""Three hosts in networks of their own: a worker, a proxy and replicas on each; beat and the servers are elsewhere."""

import itertools
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from cli.demo.load.generator import Load, LoadSettings
from cli.demo.load.mix import Kind
from db.connection.transactions import in_transaction
from db.proxies.acks import list_proxies
from tasks.messaging.queues import SHARED_QUEUES, host_queue
from tests.support.partitions.network import HOSTS, Network
from tests.support.stack.server_process import Process
from tests.support.stack.stack import ROOT, Fleet
from tests.support.stack.waiting import eventually
from tests.support.workers.callers import running
from tests.support.workers.runtimes import environments_of

FAR = "west"
"""The host that is cut off."""
NEAR = tuple(host for host in HOSTS if host != FAR)
WEB, SIDE = 6, 2
"""Replicas of the deployment that is everywhere, and of the one that only the near hosts can run."""
POLICY = {"strategy": "rolling_update", "spec": {"max_surge": 2, "max_unavailable": 1}}
SILENCE_SECONDS = "8"
_MIX = {Kind.GET_CLOSE: 2.0, Kind.POST_CLOSE: 1.0}
"""A POST is sent once, whatever becomes of it: no proxy may ask another replica."""


@dataclass
class SeveralHosts:
    """What runs in the network."""

    network: Network
    fleet: Fleet
    homes: dict[str, Path]
    api: Process
    proxies: dict[str, Process]
    secret: dict[str, str]
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def running(self, *hosts: str) -> list[tuple[str, int]]:
        """The route and the pid of each replica that runs there, sorted."""
        found = [
            (carried["ROLLWAY_ROUTE"], pid)
            for host in hosts or HOSTS
            for pid, carried in environments_of(self.homes[host])
            if "ROLLWAY_ROUTE" in carried
        ]
        return sorted(found)

    def starts(self) -> Counter[str]:
        """How often a replica was started for each route, by what replicas said in their logs."""
        logs = [log for home in self.homes.values() for log in (home / "logs" / "replicas").glob("*.log")]
        return Counter({log.stem: log.read_text().count("listens on port") for log in logs})

    def placed(self, revision: str = "") -> Counter[str]:
        """How many replicas of `web` that are healthy each host has; of that revision alone, if it is said."""
        routes = self.fleet.routes("web")
        return Counter(route["host"] for route in routes if revision in ("", route["revision"]))

    def has_subscribers(self, host: str) -> bool:
        """Whether it shows itself, and Redis answers it."""
        query = """
            SELECT FROM hosts WHERE name = %s AND last_seen_at > clock_timestamp() - interval '2 s'
                                AND down_since IS NULL AND deaf_since IS NULL AND unasked_since IS NULL
        """
        return bool(self.fleet.rows(query, host))

    def rests(self) -> int:
        """How often the far worker has begun to rest."""
        return self.fleet.log(f"worker-{FAR}").count("rests until it reaches Postgres")

    def is_seen(self, host: str) -> bool:
        """Whether it shows itself, be it that Redis does not answer it."""
        query = "SELECT FROM hosts WHERE name = %s AND last_seen_at > clock_timestamp() - interval '2 s'"
        return bool(self.fleet.rows(query, host))

    def is_told(self, proxy: str) -> bool:
        """Whether drains wait for this proxy."""
        known = in_transaction(self.fleet.engine, list_proxies)
        return any(each.node_id == proxy and each.is_live for each in known)

    def roll(self, name: str) -> str:
        """Begin a rollout to a revision that never ran, so that no replica is parked for it; its name."""
        revision = f"v{next(self.numbers)}"
        spec = {**_SPEC, "env": {"STARTUP_SECONDS": "0.7", "VERSION": self.secret if name == "side" else revision}}
        self.fleet.ask("add_revision", deployment=name, name=revision, spec=spec)
        self.fleet.activate(name, revision)
        return revision

    def roll_side(self) -> None:
        """Roll out `side`, which only the near hosts can run, until it has completed."""
        revision = self.roll("side")
        self.wait_for_end("side", 60)
        assert {route["revision"] for route in self.fleet.routes("side")} == {revision}

    def wait_for_end(self, name: str, within: float) -> dict[str, Any]:
        """The rollout of a deployment, once it has ended."""
        ended = eventually(lambda: self._ended(name), within, f"the rollout of {name} to end")
        return ended[-1]

    def _ended(self, name: str) -> list[dict[str, Any]]:
        rollouts = self.fleet.rollouts(name)
        return rollouts if all(rollout["outcome"] for rollout in rollouts) else []

    @contextmanager
    def cut(self, places: Sequence[str]) -> Iterator[None]:
        """While it lasts, nothing comes through between the far host and these places."""
        self.network.part(FAR, places)
        try:
            yield
        finally:
            self.network.heal()

    @contextmanager
    def under_load(self) -> Iterator[dict[str, Load]]:
        """15 requests a second to `web` through each proxy, each on a connection of its own."""
        addresses = {name: f"{self.network.address(name)}:{proxy.port}" for name, proxy in self.proxies.items()}
        settings = LoadSettings(address="", host="web", rate=15, timeout=30, mix=_MIX)
        with ExitStack() as stack:
            yield {
                name: stack.enter_context(running(Load(replace(settings, address=address))))
                for name, address in addresses.items()
            }

    def wait_until_whole(self) -> None:
        """Every host is heard and works, every proxy is told, and of each route runs one process, and no other."""
        for host in HOSTS:
            eventually(partial(self.has_subscribers, host), what=f"{host} to be heard")
            eventually(partial(self.is_told, host), what=f"{host}'s proxy to be told")
            wanted = {*SHARED_QUEUES, host_queue(host)}
            eventually(lambda: self.queues(host) == wanted, what=f"{host} to read its queues")  # noqa: B023
        for name, replicas in (("web", WEB), ("side", SIDE)):
            eventually(partial(self._is_whole, name, replicas), what=f"{name} to be whole")
        eventually(self._runs_each_once, what="a process for each route, and no other")

    def _runs_each_once(self) -> bool:
        wanted = sorted([*self.fleet.healthy("web"), *self.fleet.healthy("side")])
        return [route for route, _ in self.running()] == wanted

    def queues(self, host: str) -> set[str]:
        """The queues that its worker reads, as it says itself; none where it does not answer."""
        answers = self.fleet.producer.control.inspect(timeout=1).active_queues() or {}
        found = (queues for name, queues in answers.items() if name.startswith(f"worker-{host}@"))
        return {queue["name"] for queue in next(found, [])}

    def _is_whole(self, name: str, replicas: int) -> bool:
        state = self.fleet.state(name)
        return state["lifecycle"] == "ready" and len(self.fleet.healthy(name)) == replicas


_SPEC = {
    "command": [sys.executable, str(ROOT / "tools" / "bench" / "replica.py")],
    "health_check": {"interval_seconds": 0.5, "start_deadline_seconds": 20},
    "drain_seconds": 0.2,
}
