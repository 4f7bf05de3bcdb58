"""A fleet that a real Prometheus watches: the server for proxies, and a worker and a beat that come and go."""

import itertools
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import redis
from prometheus_client.parser import text_string_to_metric_families

from domain.traffic.nodes import token_of
from tests.support.faults.forwarder import Forwarder, forwarder
from tests.support.faults.prometheus import Prometheus, program
from tests.support.people.asking import KEY
from tests.support.people.people_api import people_process
from tests.support.proxies import plain_http
from tests.support.proxies.edge import api_process
from tests.support.proxies.streaming import Node
from tests.support.stack.ports import free_port
from tests.support.stack.server_process import Process
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually
from traffic.resources import ResourceKind

WORKER = {"ROLLWAY_HOST_SILENCE_SECONDS": "2", "ROLLWAY_DRAIN_DEADLINE_SECONDS": "1"}
USER = ("prometheus", token_of("prometheus", KEY))


@dataclass
class Watched:
    """`cut_off`: a second server for proxies, which has no Redis and reaches Postgres through `wire`."""

    fleet: Fleet
    api: Process
    cut_off: Process
    people: Process
    wire: Forwarder
    small: Process
    ports: dict[str, int]
    prometheus: Prometheus | None = None
    running: set[str] = field(default_factory=set)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def client(self) -> redis.Redis:
        """A client of the fleet's Redis."""
        return redis.Redis.from_url(self.fleet.environment["REDIS_URL"])

    def target(self, name: str) -> str:
        """Where a process shows its metrics, as Prometheus names it."""
        return f"127.0.0.1:{self.ports[name]}"

    def work(self) -> None:
        """A worker and a beat, if they do not run yet, seen by Prometheus: what they count then is an increase."""
        if "worker1" not in self.running:
            self.fleet.start_workers("worker1", **WORKER, ROLLWAY_METRICS_PORT=str(self.ports["worker"]))
        if "beat" not in self.running:
            self.fleet.start_beat(ROLLWAY_METRICS_PORT=str(self.ports["beat"]))
        self.running |= {"worker1", "beat"}
        for name in ("worker", "beat"):
            eventually(partial(self._shows, name))
            self.sees(f'up{{instance="{self.target(name)}"}} == 1')

    def _shows(self, name: str) -> bool:
        return bool(self.page(name).status_code == 200)

    def rest(self) -> None:
        """Neither worker nor beat."""
        for name in list(self.running):
            self.kill(name)

    def kill(self, name: str) -> None:
        """A worker or a beat ends, as when memory is short."""
        self.running.remove(name)
        self.fleet.kill(name)

    def has_fired(self, alert: str, labels: Mapping[str, str], since: float) -> bool:
        """What Prometheus says; nothing has where there is none."""
        return self.prometheus is not None and self.prometheus.has_fired(alert, labels, since)

    def sees(self, expression: str) -> None:
        """Wait until Prometheus, where there is one, has a sample: what comes then is an increase."""
        if self.prometheus is not None:
            eventually(partial(self.prometheus.ask, expression), what=expression)

    def refuse(self, node: Node) -> None:
        """A proxy does not take over what it is told. To refuse what is old news by then is to refuse nothing."""
        before = self._refused()
        with node:
            node.ask(ResourceKind.CLUSTERS)
            while self._refused() == before:
                node.refuse(node.hear())

    def _refused(self) -> float:
        families = text_string_to_metric_families(self.page("api").text)
        (refused,) = (family for family in families if family.name == "rollway_refused_answers")
        return float(refused.samples[0].value)

    def page(self, name: str) -> Any:
        """What a process shows of itself."""
        return plain_http.get(f"http://{self.target(name)}/metrics")

    def of_the_fleet(self) -> Any:
        """What the server for proxies shows of the fleet."""
        return plain_http.get(f"{self.api.url}/metrics/fleet", auth=USER)


@contextmanager
def watched_fleet(database: str, redis_url: str, folder: Path) -> Iterator[Watched]:
    """The server for proxies and Prometheus, where there is one; nothing works yet."""
    postgres = int(database.rpartition(":")[2].partition("/")[0])
    with forwarder(postgres) as wire:
        fleet = Fleet(database, redis_url, folder / "home")
        fleet.home.mkdir()
        api = api_process(database, redis_url, folder)
        (folder / "cut-off").mkdir()
        through = database.replace(f":{postgres}/", f":{wire.port}/")
        cut_off = api_process(through, "redis://127.0.0.1:1/0", folder / "cut-off")
        ports = {"worker": free_port(), "beat": free_port(), "small": free_port()}
        people = people_process(database, redis_url, folder)
        ports |= {"api": api.port, "cut-off": cut_off.port, "people": people.port}
        small = worker_on_a_small_disk(fleet, folder, ports["small"])
        watched = Watched(fleet, api, cut_off, people, wire, small, ports)
        api.start()
        people.start()
        if found := program("prometheus"):
            watched.prometheus = Prometheus(found, folder, _jobs(watched))
            watched.prometheus.process.start()
            for counter in ("rollway_rollouts", "rollway_refused_answers", "rollway_wrong_tokens"):
                # what comes now is an increase
                eventually(partial(watched.prometheus.ask, f"{counter}_total"), what=counter)
        try:
            yield watched
        finally:
            running = [watched.prometheus.process] if watched.prometheus else []
            for process in (*running, small, cut_off, people, api):
                if process.process is not None:
                    process.end(kill=True)
            fleet.end()


def worker_on_a_small_disk(fleet: Fleet, folder: Path, port: int) -> Process:
    """A worker of another host whose home is a disk of 2 MB that only it sees, with next to nothing left."""
    home = folder / "small"
    home.mkdir()
    disk, python = shlex.quote(str(home)), shlex.quote(sys.executable)
    fill = f"mount -t tmpfs -o size=2m,mode=700 tmpfs {disk} && head -c 1900000 /dev/zero > {disk}/full"
    work = f"exec {python} -m celery -A tasks.app worker -P threads -c 1 -n small@%h --loglevel INFO"
    environment = {
        **fleet.environment,
        "ROLLWAY_HOME": str(home),
        "ROLLWAY_HOST": "small",
        "ROLLWAY_METRICS_PORT": str(port),
    }
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", f"{fill} && {work} -Q host.small"]
    return Process(command, port, folder / "small.log", f"http://127.0.0.1:{port}/metrics", environment)


def may_mount() -> bool:
    """Whether a process may have a disk that only it sees."""
    command = ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def _jobs(watched: Watched) -> list[dict[str, Any]]:
    """As docs/watching.md shows them."""
    fleets = {"username": USER[0], "password": USER[1]}
    processes = [watched.target(name) for name in ("api", "worker", "beat", "cut-off", "people", "small")]
    return [
        {"job_name": "rollway", "static_configs": [{"targets": processes}]},
        {
            "job_name": "rollway-fleet",
            "metrics_path": "/metrics/fleet",
            "basic_auth": fleets,
            "static_configs": [{"targets": [watched.target(name) for name in ("api", "cut-off")]}],
        },
    ]
