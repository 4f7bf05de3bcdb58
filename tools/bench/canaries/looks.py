"""What a look of a canary's judge costs after so many intervals, as `python -m tools.bench.canaries.looks` prints it.

A look is what is done each second: the sums are read, one interval is folded into them, they are written, and judged.
The same requests are told again and again, 50 a second, with a judge of all measures.
"""

import statistics
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import cycle, pairwise
from time import process_time

import numpy as np
from pydantic import TypeAdapter

from domain.judge.evidence import fold_interval
from domain.judge.judge import judge
from domain.judge.judge_spec import Judge, Slow
from domain.model.canary import NOTHING_SEEN, Evidence, Sums
from tests.support.worlds.streams import BEFORE, Side, stream

AFTER = (60, 1_800, 86_400)
LOOKS = 300
SETTINGS = Judge(slow=Slow())
_JSON = TypeAdapter(Sums)


def main() -> None:
    """Print the median of some looks after so many intervals, and how much is stored then."""
    told, sums = _told(), NOTHING_SEEN
    since = next(told).at
    for before, after in pairwise((0, *AFTER)):
        for _ in range(before, after):
            sums = fold_interval(sums, next(told), SETTINGS, since)
        took = statistics.median(_look(sums, next(told)) for _ in range(LOOKS))
        print(f"{after:,} intervals: {1000 * took:.2f} ms, {len(_JSON.dump_json(sums)):,} bytes", flush=True)


def _told() -> Iterator[Evidence]:
    once = stream(np.random.default_rng(7), Side(), Side()).evidence()[BEFORE:]
    for seconds, its in enumerate(cycle(once)):
        yield replace(its, at=once[0].at + timedelta(seconds=seconds))


def _look(sums: Sums, told: Evidence) -> float:
    began = process_time()
    assert sums.since is not None
    found = fold_interval(_JSON.validate_json(_JSON.dump_json(sums)), told, SETTINGS, sums.since)
    judge(SETTINGS, found, sums.since, told.at)
    return process_time() - began


if __name__ == "__main__":
    main()
