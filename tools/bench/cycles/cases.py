"""What a rollout costs where there is more than the bare minimum: hosts, a past, deployments at rest, and an open page.

In each case the same rollouts are asked for, of deployments of three replicas, until nothing of them is left to do.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import psycopg

from domain.installation.settings import Retention
from domain.installation.tokens import Role
from tests.support.people.event_stream import listening
from tools.bench.cycles.storm import each, roll_out
from tools.bench.data import grow_old
from tools.bench.passes import in_turns, middle, passes
from tools.bench.stage import Stage, stage

ROLLOUTS = 200
_SHARED = ("client_ms_each", "workers_ms_each", "postgres_ms_each")
_KEPT = {f"ROLLWAY_KEEP_{name.removesuffix('_days').upper()}_DAYS": "1000" for name in Retention.model_fields}


@dataclass(frozen=True, slots=True)
class Situation:
    """One fleet. `past`: how many rollouts each deployment had before; `has_page`: somebody follows the fleet."""

    name: str
    hosts: int = 1
    deployments: int = ROLLOUTS
    past: int = 0
    has_page: bool = False


BARE = Situation("bare")
CASES = (
    BARE,
    Situation("two hosts", hosts=2),
    Situation("five hosts", hosts=5),
    Situation("two years of history", past=300),
    Situation("3 % of deployments moving", deployments=100 * ROLLOUTS // 3),
    Situation("page open", has_page=True),
)


def measure(*, full: bool) -> dict[str, Any]:
    """Each case in turns; the processor time of one rollout, and how much it is over that of the bare case."""
    found = in_turns(passes(full=full) if full else 1, CASES, run)
    rows = {case: [_row(case, *pair) for pair in zip(runs, found[BARE], strict=True)] for case, runs in found.items()}
    return {"rows": [middle(each) for each in rows.values()], "passes": _by_target(rows)}


def run(case: Situation) -> dict[str, float]:
    """Processor time of one of the rollouts by who spent it, in ms, and how many there were a second."""
    with stage() as made:
        made.fill_quiet(case.deployments, case.hosts)
        if case.past:
            with psycopg.connect(made.database, autocommit=True) as connection:
                grow_old(connection, case.past)
        made.start_simulation(1, start_seconds=0.0, hosts=case.hosts, **_KEPT)
        with _page(made) if case.has_page else nullcontext():
            found = roll_out(made, ROLLOUTS)
    return {"rollouts_a_second": found["rollouts_per_second"], **each(found)}


def _row(case: Situation, found: Mapping[str, float], bare: Mapping[str, float]) -> dict[str, Any]:
    return {
        "case": case.name,
        "over_bare": sum(found[name] for name in _SHARED) / sum(bare[name] for name in _SHARED),
        **found,
    }


def _by_target(rows: Mapping[Situation, Sequence[Mapping[str, Any]]]) -> dict[str, list[float]]:
    return {f"over bare, {case.name}": [row["over_bare"] for row in each] for case, each in rows.items()}


@contextmanager
def _page(made: Stage) -> Iterator[None]:
    """The server for people, and a stream of it as an open page has one."""
    with made.serving_people() as people, people.client(Role.VIEWER) as client, listening(client):
        yield
