"""Rollouts of real processes while workers, beat, Redis, Postgres and replicas are killed at random moments."""

import random
import time
from collections import Counter
from dataclasses import dataclass, field

import psutil
import redis

from tests.support.stack.servers import EmbeddedServer
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually

REPLICAS = 3
ENDS_WITHIN = 120.0


@dataclass
class ChaosReport:
    """What was done and seen. Recovery: seconds from a fault until the control plane wrote its next change."""

    rollouts: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    recoveries: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)

    @property
    def worst_recovery(self) -> float:
        return max(self.recoveries, default=0.0)


class Chaos:
    """One deployment, rolled out again and again; every rollout must end as promised, whatever is killed."""

    def __init__(self, fleet: Fleet, postgres: EmbeddedServer, valkey: EmbeddedServer, seed: int) -> None:
        self.report = ChaosReport()
        self._fleet = fleet
        self._postgres = postgres
        self._valkey = valkey
        self._random = random.Random(seed)
        self._workers = ["worker1", "worker2"]
        self._beat = "beat"
        self._started = 2
        self._faults = {
            "worker killed": self._kill_worker,
            "beat killed": self._kill_beat,
            "redis killed": self._kill_redis,
            "redis emptied": self._empty_redis,
            "postgres killed": self._kill_postgres,
            "replica killed": self._kill_replica,
        }

    def run(self, rollouts: int) -> ChaosReport:
        """Fails with an AssertionError at the first rollout that does not end as promised."""
        self._fleet.start_workers(*self._workers)
        self._fleet.start_beat(self._beat)
        self._fleet.deploy_first("web", REPLICAS)
        running = "v1"
        for number in range(2, rollouts + 2):
            running = self._one_rollout(running, f"v{number}", broken=self._random.random() < 0.3)
        return self.report

    def _one_rollout(self, running: str, revision: str, *, broken: bool) -> str:
        env = {"BROKEN": "start"} if broken else {"STARTUP_SECONDS": "0.5"}
        self._fleet.add_revision("web", revision, **env)
        self._fleet.activate("web", revision)
        for name in self._random.sample(list(self._faults), k=2):
            time.sleep(self._random.uniform(0, 0.8))  # a random moment, not a wait for anything
            self._inject(name)
        expected = running if broken else revision
        eventually(self._has_ended, ENDS_WITHIN, f"the rollout of {revision} to end")
        self._fleet.wait_until_ready("web", expected, REPLICAS, ENDS_WITHIN)
        self._check(expected)
        self.report.rollouts += 1
        self.report.outcomes["rolled back" if broken else "completed"] += 1
        return expected

    def _inject(self, name: str) -> None:
        before = self._fleet.state("web")["version"]
        began = time.monotonic()
        self._faults[name]()
        self.report.faults[name] += 1
        eventually(
            lambda: self._has_ended() or self._fleet.state("web")["version"] > before, ENDS_WITHIN, f"after: {name}"
        )
        if not self._has_ended():
            self.report.recoveries.append(time.monotonic() - began)

    def _has_ended(self) -> bool:
        return self._fleet.state("web")["rollout_id"] is None

    def _check(self, expected: str) -> None:
        """One process for each live route, none twice, all steps numbered without a gap."""
        fleet = self._fleet
        eventually(lambda: fleet.replica_routes("web") == fleet.healthy("web"), what="one process for each live route")
        assert {route["revision"] for route in fleet.routes("web")} == {expected}
        gaps = fleet.rows(
            "SELECT FROM rollouts o WHERE o.steps <> (SELECT count(*) FROM rollout_steps s WHERE s.rollout_id = o.id)"
        )
        assert not gaps, "a step is missing or was made twice"

    def _kill_worker(self) -> None:
        victim = self._random.choice(self._workers)
        self._fleet.kill(victim)
        self._started += 1
        self._workers[self._workers.index(victim)] = f"worker{self._started}"
        self._fleet.start_workers(f"worker{self._started}")

    def _kill_beat(self) -> None:
        self._fleet.kill(self._beat)
        self._started += 1
        self._beat = f"beat{self._started}"
        self._fleet.start_beat(self._beat)

    def _kill_redis(self) -> None:
        self._valkey.kill()
        self._valkey.start()

    def _empty_redis(self) -> None:
        with redis.Redis.from_url(self._valkey.url) as client:
            client.flushall()

    def _kill_postgres(self) -> None:
        self._postgres.kill()
        self._postgres.start()

    def _kill_replica(self) -> None:
        eventually(self._has_killed_one, what="a replica to be killed before it ends by itself")

    def _has_killed_one(self) -> bool:
        try:
            self._random.choice(self._fleet.replica_processes("web")).kill()
        except psutil.NoSuchProcess:
            return False
        return True
