"""`make judge`: false alarms and needed requests of a canary's judge, beside the usual rules of others: docs/canary.md.

Each row is one truth, in 5,000 canaries (`--runs`) of six minutes, at 50 requests a second of which the canary gets
10 %. All three rules see the same requests: ours each second, the others each minute, as their examples have it.
"""

import argparse
import os
import statistics
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from domain.judge.settings import Judge, Slow
from tests.support.worlds.streams import Side, stream
from tests.support.worlds.verdicts import Verdict, by_minute, ours

PAGE, BEGIN, END = Path("docs/canary.md"), "<!-- judge -->\n", "<!-- /judge -->"
RULES = ("Rollway", "95 %, 3 minutes", "99 %, p99 500 ms, 5 minutes")
FINE, SETTINGS = Side(), Judge(slow=Slow())


class Truth(NamedTuple):
    """How both sides answer, and whether errors come in bursts that hit both."""

    name: str
    canary: Side
    control: Side = FINE
    bursts: bool = False


def _alike(name: str, side: Side, *, bursts: bool = False) -> Truth:
    return Truth(f"alike: {name}", side, side, bursts)


TRUTHS = (
    _alike("0.1 % fail", FINE),
    _alike("1 % fail", Side(fails=0.01)),
    _alike("5 % fail", Side(fails=0.05)),
    _alike("30 % fail for a second in fifty", FINE, bursts=True),
    _alike("5 % fail at once, answers after 30 s", Side(fails=0.05, median=30)),
    _alike("2 % hang", Side(hangs=0.02)),
    _alike("20 % refused", Side(refuses=0.2)),
    Truth("0.3 ms later, of 1.5 ms", Side(median=0.0015, later=0.0003), Side(median=0.0015)),
    Truth("19 % later, of 200 ms", Side(median=0.2, times=1.19), Side(median=0.2)),
    Truth("0.3 s later in its first 5 s", Side(cold=5)),
    Truth("1 % fail, not 0.1 %", Side(fails=0.01)),
    Truth("2 % fail, not 1 %", Side(fails=0.02), Side(fails=0.01)),
    Truth("5 % fail, not 1 %", Side(fails=0.05), Side(fails=0.01)),
    Truth("all fail", Side(fails=1)),
    Truth("all hang", Side(hangs=1)),
    Truth("all refused", replace(FINE, refuses=1)),
    Truth("1 % refused, not 0", replace(FINE, refuses=0.01)),
    Truth("50 % later, of 200 ms", Side(median=0.2, times=1.5), Side(median=0.2)),
    Truth("twice as late, of 20 ms", Side(times=2)),
)


def seen(truth: Truth, seed: int) -> tuple[Verdict, ...]:
    """What each rule comes to in one canary."""
    found = stream(np.random.default_rng([seed, 71]), truth.canary, truth.control, bursts=truth.bursts)
    return ours(found, SETTINGS), by_minute(found, 0.05, 3), by_minute(found, 0.01, 5, slowest=0.5)


def _some(truth: Truth, seeds: range) -> list[tuple[Verdict, ...]]:
    return [seen(truth, seed) for seed in seeds]


def _cells(verdicts: Sequence[Verdict]) -> str:
    ended = [verdict for verdict in verdicts if verdict.found == "harm"]
    share = f"{100 * len(ended) / len(verdicts):.4g} %"
    return f"{share}, {statistics.median(each.requests for each in ended):,.0f}" if len(ended) > 1 else share


def row(truth: Truth, runs: Sequence[tuple[Verdict, ...]]) -> str:
    """A line of the table."""
    good = [verdict.requests for verdict, *_ in runs if verdict.found == "good"]
    went_on = f"{100 * len(good) / len(runs):.4g} %, {statistics.median(good):,.0f}" if len(good) > 1 else "0 %"
    ended = " | ".join(_cells(of_a_rule) for of_a_rule in zip(*runs, strict=True))
    return f"| {truth.name} | {went_on} | {ended} |"


def main() -> None:
    """Write the table into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5_000, help="canaries of each truth (5,000)")
    runs = parser.parse_args().runs
    lines = [f"| of {runs:,} canaries each | good enough | {' | '.join(RULES)} |", "|" + "---|" * (2 + len(RULES))]
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        chunks = [range(at, min(at + 50, runs)) for at in range(0, runs, 50)]
        for truth in TRUTHS:
            found = [run for some in processes.map(_some, [truth] * len(chunks), chunks) for run in some]
            lines.append(row(truth, found))
            print(lines[-1], flush=True)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    table = "\n".join(lines)
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
