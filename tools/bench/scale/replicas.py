"""One deployment of a hundred, a thousand and ten thousand replicas: a decision, a cycle, a whole rollout."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import psycopg

from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import make_engine
from domain.handlers.deploying import DeployingProvisioningHandler
from tests.support.stack.servers import embedded_postgres
from tests.support.workers.coordinators import coordinator_without_redis
from tools.bench.cycles.cost import Cost, collecting_seldom, cost_of
from tools.bench.cycles.decide import decide
from tools.bench.cycles.records import begin, world_turns
from tools.bench.passes import in_turns, middle, passes
from tools.bench.rollouts.measured import Case
from tools.bench.rollouts.measured import run as roll_out
from tools.bench.stage import migrate
from tools.bench.watch import processors

SIZES = (100, 1_000, 10_000)
_HANDLER = DeployingProvisioningHandler()
_CYCLES = 5


def measure(*, full: bool) -> dict[str, Any]:
    """Each size in turns."""
    found = in_turns(passes(full=full) if full else 1, SIZES, run)
    return {"rows": [middle(each) for each in found.values()]}


def run(replicas: int) -> Mapping[str, Any]:
    """A decision, cycles that replace one replica each, and a rollout by quarters whose replicas need a second."""
    rollout = roll_out(Case(f"{replicas} replicas", replicas, "25%", "25%"))
    with collecting_seldom():
        first, *others = _cycles(replicas)
        decision = decide(replicas, rounds=5, times=max(5, 50_000 // replicas))
    return {
        "replicas": replicas,
        "decision_us": decision["median_us"],
        "first_cycle_ms": 1000 * first.seconds,
        "cycle_ms": 1000 * median(cost.seconds for cost in others),
        "cycle_worker_ms": 1000 * median(cost.client for cost in others),
        "cycle_postgres_ms": 1000 * median(cost.server for cost in others),
        "rollout_s": rollout["wall_seconds"],
        "ideal_s": rollout["ideal_seconds"],
        "longest_transaction_ms": rollout["cost"]["longest_transaction_ms"],
        **processors(rollout["cost"]),
    }


def _cycles(replicas: int) -> list[Cost]:
    """Of a rollout one by one, the first ones; each creates one replica and drains one."""
    with (
        tempfile.TemporaryDirectory(prefix="rollway-bench-") as folder,
        embedded_postgres(Path(folder), fsync=True) as server,
    ):
        migrate(server.url)
        engine, postgres = make_engine(DatabaseSettings(url=server.url)), psutil.Process(server.pid)
        costs: list[Cost] = []
        coordinator = coordinator_without_redis(engine)
        with psycopg.connect(server.url, autocommit=True) as world:
            for size, cycles in ((SIZES[0], 2), (replicas, _CYCLES)):  # connections learn their statements
                begin(world, size)
                costs = []
                for _ in range(cycles):
                    world_turns(world)
                    costs.append(cost_of(lambda: coordinator.process_chunk(_HANDLER).looked_at, postgres))
        engine.dispose()
    return costs
