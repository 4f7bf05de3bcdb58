"""What one side of a pair does, in a process of its own: prints figures as JSON, the less the better.

It is run with the product, the tests and the bench of its own tree.
"""

import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from db.audit.receipts import seal, unsealed
from db.connection.transactions import in_transaction
from tests.support.rows.databases import copy_of, engine_on, migrated_template
from tests.support.rows.deployments import ask, make_deployment, start_all, write
from tests.support.stack.servers import embedded_postgres
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet
from tools.bench.cycles.cycle import measure_cycles
from tools.bench.cycles.decide import measure as measure_decisions

_DEPLOYMENTS = 1_000
_ROLLOUTS = 30


def cycles() -> dict[str, float]:
    """Cycles of a thousand deployments: on the wall, and of the processors of worker and Postgres."""
    ((found,),) = measure_cycles((_DEPLOYMENTS,), times=1).values()
    figures = {}
    for what in ("mutating", "waiting"):
        figures[f"a {what} cycle, µs"] = found[what].seconds / _DEPLOYMENTS * 1e6
        figures[f"a {what} cycle, µs of processors"] = found[what].processor / _DEPLOYMENTS * 1e6
    return figures


def decisions() -> dict[str, float]:
    """The pure decision."""
    return {f"a decision of {row['routes']}, µs": row["least_us"] for row in measure_decisions(full=False)["rows"]}


def rollouts() -> dict[str, float]:
    """Rollouts of three replicas from the command to the seal: of the processor of the worker."""
    with (
        tempfile.TemporaryDirectory(prefix="rollway-bench-") as folder,
        embedded_postgres(Path(folder)) as server,
        copy_of(migrated_template(server), server) as url,
    ):
        engine = engine_on(url)
        for number in range(_ROLLOUTS):
            make_deployment(engine, "■■■|", name=f"service-{number}")
        coordinator, began = coordinator_without_redis(engine), time.process_time()
        for number in range(_ROLLOUTS):
            ask(engine, "activate_revision", deployment=f"service-{number}", revision="v1")
        while len(ended := in_transaction(engine, lambda connection: unsealed(connection, _ROLLOUTS))) < _ROLLOUTS:
            run_until_quiet(coordinator)
            start_all(engine)
            write(engine, "UPDATE routes SET status = 'terminated', stopped_at = now() WHERE status = 'terminating'")
            write(engine, "UPDATE deployments SET due_at = now() WHERE lifecycle = 'deploying'")
        decided = time.process_time()
        for deployment, rollout in ended:
            in_transaction(engine, partial(seal, deployment_id=deployment, rollout_id=rollout))
        sealed = time.process_time()
        engine.dispose()
    return {
        "a rollout of 3, ms of the worker": (decided - began) / _ROLLOUTS * 1e3,
        "its receipt, ms of the worker": (sealed - decided) / _ROLLOUTS * 1e3,
    }


if __name__ == "__main__":
    json.dump({**decisions(), **cycles(), **rollouts()}, sys.stdout)
