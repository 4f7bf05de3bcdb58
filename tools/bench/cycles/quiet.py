"""What a fleet costs in which nothing happens: every deployment is ready, with all of its replicas healthy.

Probes of replicas are not in it: hosts make them (`python -m tools.bench.probes`).
"""

import time
from collections.abc import Mapping
from typing import Any

from tools.bench.passes import in_turns, middle, passes
from tools.bench.stage import Stage, stage
from tools.bench.watch import watching

FLEETS = (1_000, 10_000)
WORKERS = 2
OWN = ("worker1", "worker2", "beat")
_SETTLE_SECONDS = 5.0


def measure(*, full: bool) -> dict[str, Any]:
    """Processor time, transactions and writes of 10,000 deployments with 30,000 replicas; in turns with 1,000."""
    seconds = 60.0 if full else 31.0  # a long tick of each handler is in it
    found = in_turns(passes(full=full), FLEETS, lambda count: run(count, seconds))
    rows = {count: [_row(fleet) for fleet in fleets] for count, fleets in found.items()}
    targets = {
        "own %": [row["own_%"] for row in rows[10_000]],
        "rows written": [row["rows_written"] for row in rows[10_000]],
    }
    details = [fleets[-1] for fleets in found.values()]
    return {"rows": [middle(each) for each in rows.values()], "passes": targets, "details": details}


def _row(fleet: Mapping[str, Any]) -> dict[str, Any]:
    cost = fleet["cost"]
    return {
        "deployments": fleet["deployments"],
        "routes": fleet["routes"],
        "own_%": 100 * fleet["own_share"],
        **{f"{name}_%": 100 * cost["cpu_share"][name] for name in (*OWN, "postgres", "valkey")},
        "transactions_a_minute": cost["transactions_a_minute"],
        "rows_written": cost["rows_written"],
        "signs_of_life": cost["signs_of_life"],
    }


def run(deployments: int, seconds: float) -> dict[str, Any]:
    """So many seconds of a quiet fleet."""
    with stage() as made:
        made.fill_quiet(deployments)
        made.start_simulation(WORKERS, start_seconds=1.0)
        return quiet_for(made, deployments, seconds)


def quiet_for(made: Stage, deployments: int, seconds: float) -> dict[str, Any]:
    """So many seconds of this fleet, once it has settled."""
    figures: dict[str, Any] = {"deployments": deployments, "routes": 3 * deployments}
    time.sleep(_SETTLE_SECONDS)
    with watching(made, figures, every_seconds=1.0):
        time.sleep(seconds)
    (still,) = made.rows("SELECT count(*) FROM deployments WHERE lifecycle = 'ready'")
    assert still["count"] == deployments, "a quiet fleet stays as it is"
    share = figures["cost"]["cpu_share"]
    figures["own_share"] = sum(share[name] for name in OWN)
    figures["servers_share"] = share["postgres"] + share["valkey"]
    return figures
