"""The cost of a canary with a day of evidence, next to one with a minute's: `python -m tools.bench.canaries.day`.

Two workers, a beat and simulated replicas. A canary holds, since its judge asks for more requests than ever come; each
second an interval of it is told, as the server for proxies writes it. After a minute, and after 86,400 intervals more,
this is measured: the processor time of the workers, in percent of a core, a `why` of the canary, and how long a
neighbour's rolling update of 3 replicas takes; and without any canary, what the rest is.
"""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import accumulate, cycle, repeat
from typing import Any, NamedTuple

import numpy as np
import psycopg
from psycopg import Connection
from pydantic import TypeAdapter

from db.connection.transactions import in_transaction
from db.proxies.acks import note_known_weights
from db.proxies.measurements import due_rollouts, record_look
from db.views.planning_views import waiting
from domain.judge.evidence import fold_interval
from domain.judge.judge_spec import Judge
from domain.model.answer_counts import Answers, Counters
from domain.model.canary import NOTHING_SEEN, Sums
from domain.planning.wait_explanation import why
from tests.support.stack.waiting import eventually, meanwhile
from tests.support.worlds.streams import BEFORE, Side, stream
from tools.bench.processor import processor_seconds
from tools.bench.stage import Stage, rolling, stage

DAY = 86_400
MINUTE = 60
WATCHED_SECONDS = 120
ROLLOUTS = 6
JUDGE = {"slow": {}, "at_least": {"requests": 1_000_000, "seconds": 0}, "at_most": {"seconds": 30 * DAY}}
POLICY = {"strategy": "canary", "spec": {"steps": ["20%"], "judge": JUDGE}}
SETTINGS = Judge.model_validate(JUDGE)
_JSON = TypeAdapter(Sums)

_NEWEST = "SELECT name FROM deployments ORDER BY created_at DESC LIMIT 1"
_MORE_INTERVALS = """
    WITH last AS (SELECT * FROM intervals ORDER BY rollout_id DESC, id DESC LIMIT 1)
    INSERT INTO intervals (rollout_id, id, at, seconds, reporting, live, refused, copies, copies_failed)
    SELECT rollout_id, id + n, at, seconds, reporting, live, refused, copies, copies_failed
      FROM last, generate_series(1, %s) n
"""
_MORE_ANSWERS = """
    INSERT INTO answers
    SELECT (jsonb_populate_record(a, jsonb_build_object('interval_id', a.interval_id + n))).*
      FROM answers a, generate_series(1, %s) n
     WHERE a.interval_id = (SELECT max(interval_id) FROM answers)
"""


class Cost(NamedTuple):
    """`workers`: percent of a core. `why_ms`, `rollouts`: milliseconds, and seconds of the neighbour's rollouts."""

    intervals: int
    workers: float
    why_ms: float
    rollouts: list[float]


def main() -> None:
    """Measure both, and print them."""
    with stage() as made:
        made.start_simulation(2, 0.3)
        made.deploy("near", 3, rolling(1, 1))
        _print(_cost(made), "no canary")
        made.deploy("canary", 3, POLICY)
        made.activate("canary", "v2")
        with _told(made):
            eventually(lambda: made.rollouts("canary")[0]["weight"], 60, "its weight")
            _print(_cost(made), "a minute")
        with psycopg.connect(made.database, autocommit=True) as connection:  # without the product's time limits
            _add_a_day(connection)
        with _told(made):
            _print(_cost(made), "a day")


def _print(cost: Cost, what: str) -> None:
    middle, most = statistics.median(cost.rollouts), max(cost.rollouts)
    print(
        f"{what}, {cost.intervals:,} intervals: workers {cost.workers:.1f} % of a core, why {cost.why_ms:.0f} ms, "
        f"a neighbour's rolling update {middle:.2f} s ({most:.2f} s at most of {len(cost.rollouts)})",
        flush=True,
    )


@contextmanager
def _told(made: Stage) -> Iterator[None]:
    """Each second an interval, from counters that grow by what a second brings."""
    told = enumerate(accumulate(repeat(_A_SECOND)), 101)

    def tell() -> None:
        uptime, counted = next(told)
        in_transaction(made.engine, lambda connection: _look(connection, counted, uptime))

    with meanwhile(tell, 1):
        yield


_A_SECOND = next(its for its in stream(np.random.default_rng(7), Side(), Side()).evidence()[BEFORE + 60 :]).canary


def _look(connection: Connection[Any], counted: Answers, uptime: int) -> None:
    note_known_weights(connection)
    for rollout in due_rollouts(connection, 0):
        if rollout.deployment == "canary":
            of = {rollout.from_revision_id: counted + counted + counted + counted, rollout.to_revision_id: counted}
            record_look(connection, rollout, {"edge": Counters(uptime, of)}, 1)


def _add_a_day(connection: Connection[Any]) -> None:
    """Its weight has been known since yesterday, and each second's interval was folded since."""
    connection.execute(
        "UPDATE rollouts SET weight_known_at = weight_known_at - interval '1 day' WHERE weight IS NOT NULL"
    )
    ((since,),) = connection.execute("SELECT weight_known_at FROM rollouts WHERE weight IS NOT NULL").fetchall()
    once, sums = stream(np.random.default_rng(7), Side(), Side()).evidence()[BEFORE:], NOTHING_SEEN
    for second, its in zip(range(1, DAY + 1), cycle(once), strict=False):
        sums = fold_interval(sums, replace(its, at=since + timedelta(seconds=second)), SETTINGS, since)
    connection.execute("UPDATE evidence SET sums = %s", (_JSON.dump_json(sums).decode(),))
    connection.execute(_MORE_INTERVALS, (DAY,))
    connection.execute("ANALYZE")
    connection.execute(_MORE_ANSWERS, (DAY,))


def _cost(made: Stage) -> Cost:
    time.sleep(MINUTE)  # the neighbour's rollouts of before are measured for so long, and sealed
    workers = [process for name, process in made.watched().items() if name.startswith("worker")]
    before = sum(map(processor_seconds, workers))
    time.sleep(WATCHED_SECONDS)
    spent = sum(map(processor_seconds, workers)) - before
    took = [_rolled_out(made, ("v2", "v1")[turn % 2]) for turn in range(ROLLOUTS)]
    ((count,),) = [
        row.values()
        for row in made.rows(
            "SELECT count(*) AS n FROM intervals i JOIN rollouts o ON o.id = i.rollout_id WHERE o.weight > 0"
        )
    ]
    return Cost(count, 100 * spent / WATCHED_SECONDS, statistics.median(_why_ms(made) for _ in range(5)), took)


def _rolled_out(made: Stage, revision: str) -> float:
    made.activate("near", revision)
    made.wait_until_idle("near", within=300)
    last = made.rollouts("near")[-1]
    return float((last["ended_at"] - last["started_at"]).total_seconds())


def _why_ms(made: Stage) -> float:
    began = time.monotonic()
    told = in_transaction(made.engine, lambda connection: waiting(connection, made.rows(_NEWEST)[0]["name"]))
    why(told.deployment, told.now, told.around)
    return 1000 * (time.monotonic() - began)


if __name__ == "__main__":
    main()
