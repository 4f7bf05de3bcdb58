"""A quiet fleet on three hundred hosts, whose workers start at the same moment: when all are heard, and what it costs.

The hosts are threads of one process, so its own time says nothing of theirs; what Postgres and the two workers that
decide take for them is as it would be.
"""

from collections.abc import Mapping
from typing import Any

from tests.support.stack.waiting import eventually
from tools.bench.cycles.quiet import WORKERS, quiet_for
from tools.bench.passes import in_turns, middle, passes
from tools.bench.stage import Stage, stage
from tools.bench.watch import processors, watching

HOSTS = 300
FLEETS = (1_000, 10_000, 100_000)
_PATIENCE_SECONDS = 120.0

_HEARD = """
    SELECT count(*) FILTER (WHERE last_seen_at > clock_timestamp() - interval '2 seconds') AS heard,
           count(*) FILTER (WHERE down_since IS NOT NULL) AS down,
           extract(epoch FROM clock_timestamp() - min(registered_at))::float8 AS seconds
      FROM hosts
"""


def measure(*, full: bool) -> dict[str, Any]:
    """Fleets of 1,000 to 100,000 deployments, in turns."""
    found = in_turns(passes(full=full) if full else 1, FLEETS, run)
    rows = {deployments: [_row(fleet) for fleet in fleets] for deployments, fleets in found.items()}
    largest = rows[FLEETS[-1]]
    targets = {"all heard s": [row["all_heard_s"] for row in largest], "own %": [row["own_%"] for row in largest]}
    return {"rows": [middle(each) for each in rows.values()], "passes": targets}


def run(deployments: int) -> Mapping[str, Any]:
    """From the first sign of life until all are heard, and then half a minute of rest."""
    begins: dict[str, Any] = {}
    with stage() as made:
        made.fill_quiet(deployments, HOSTS)
        made.start_deciders(WORKERS)
        made.start_beat()
        with watching(made, begins, every_seconds=1.0):
            made.start_world(1.0, HOSTS)
            heard = eventually(lambda: _all_heard(made), _PATIENCE_SECONDS, "all hosts to be heard")
        rests = quiet_for(made, deployments, 31.0)
        (after,) = made.rows(_HEARD)
    assert (after["heard"], after["down"]) == (HOSTS, 0), after
    return {"deployments": deployments, "heard": heard, "begins": begins["cost"], "rests": rests}


def _all_heard(made: Stage) -> Mapping[str, Any] | None:
    """Within the same two seconds."""
    (found,) = made.rows(_HEARD)
    return found if found["heard"] == HOSTS else None


def _row(fleet: Mapping[str, Any]) -> dict[str, Any]:
    share = fleet["rests"]["cost"]["cpu_share"]
    return {
        "deployments": fleet["deployments"],
        "hosts": HOSTS,
        "all_heard_s": fleet["heard"]["seconds"],
        "postgres_until_then_ms": processors(fleet["begins"])["postgres_ms_each"],
        "own_%": 100 * fleet["rests"]["own_share"],
        "postgres_%": 100 * share["postgres"],
        "valkey_%": 100 * share["valkey"],
        "transactions_a_minute": fleet["rests"]["cost"]["transactions_a_minute"],
        "rows_written": fleet["rests"]["cost"]["rows_written"],
    }
