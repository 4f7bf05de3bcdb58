"""`make judge`: a canary's judge beside the usual rules of others, for docs/internals/canary-judge.md.

The table shows false alarms and requests. Each row is one truth, in 5,000 canaries (`--runs`) of six minutes, at 50
requests a second of which the canary gets 10 %. All three rules see the same requests: ours each second, the others
each minute, as their examples have it.
"""

import argparse
import math
import os
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from domain.judge.judge_spec import Judge, Slow
from tests.support.worlds.streams import Side, stream
from tests.support.worlds.verdicts import Verdict, by_minute, ours

PAGE, BEGIN, END = Path("docs/internals/canary-judge.md"), "<!-- judge -->\n", "<!-- /judge -->"
RULES = ("Rollway", "95 %, 3 minutes", "99 %, p99 500 ms, 5 minutes")
FINE, SETTINGS = Side(), Judge(slow=Slow())


class Truth(NamedTuple):
    """How both sides answer, and whether errors come in bursts that hit both. Callers wait for `patience` seconds.

    `good` and `harm`: how many of 100 ours must find so, at least and at most; a row outside of that is red.
    """

    name: str
    canary: Side
    control: Side = FINE
    bursts: bool = False
    patience: float = 3.0
    good: tuple[float, float] = (0, 5)
    harm: tuple[float, float] = (0, 100)


ALL, FALSE_ALARMS = (95, 100), (0, 1)


def _alike(name: str, side: Side, *, bursts: bool = False, good: tuple[float, float] = ALL) -> Truth:
    return Truth(f"alike: {name}", side, side, bursts, good=good, harm=FALSE_ALARMS)


def _no_worse(name: str, canary: Side, control: Side = FINE) -> Truth:
    return Truth(name, canary, control, good=ALL, harm=FALSE_ALARMS)


def _worse(name: str, canary: Side, control: Side = FINE, found: int = 95) -> Truth:
    return Truth(name, canary, control, harm=(found, 100))


def _never_answered(share: float) -> Truth:
    return Truth(f"{share:.0%} are never answered".replace("%", " %"), Side(hangs=share), patience=math.inf)


TRUTHS = (
    _alike("0.1 % fail", FINE),
    _alike("1 % fail", Side(fails=0.01), good=(50, 100)),
    _alike("5 % fail", Side(fails=0.05)),
    _alike("30 % fail for a second in fifty", FINE, bursts=True, good=(50, 100)),
    _alike("answers after 2 s", Side(fails=0, median=2)),
    _alike("answers after 6 s", Side(fails=0, median=6)),
    _alike("answers after 20 s", Side(fails=0, median=20)),
    _alike("5 % fail at once, answers after 30 s", Side(fails=0.05, median=30), good=(0, 100)),
    _alike("2 % hang", Side(hangs=0.02), good=(80, 100)),
    _alike("2 % are sent again", Side(again=0.02), good=(80, 100)),
    _alike("20 % refused", Side(refuses=0.2)),
    _alike("20 % redirected", Side(redirects=0.2)),
    _no_worse("0.3 ms later, of 1.5 ms", Side(median=0.0015, later=0.0003), Side(median=0.0015)),
    _no_worse("19 % later, of 200 ms", Side(median=0.2, times=1.19), Side(median=0.2)),
    _no_worse("0.3 s later in its first 5 s", Side(cold=5)),
    _worse("1 % fail, not 0.1 %", Side(fails=0.01), found=85),
    _worse("2 % fail, not 1 %", Side(fails=0.02), Side(fails=0.01), found=5),
    _worse("5 % fail, not 1 %", Side(fails=0.05), Side(fails=0.01)),
    _worse("all fail", Side(fails=1)),
    _worse("all hang", Side(hangs=1)),
    _worse("10 % are sent again", Side(again=0.1)),
    _never_answered(0.02),
    _never_answered(0.08),
    _never_answered(0.2),
    Truth("5 % fail after 60 s", Side(hangs=0.05), patience=60, harm=(95, 100)),
    _worse("all refused", replace(FINE, refuses=1)),
    _worse("1 % refused, not 0", replace(FINE, refuses=0.01), found=80),
    _worse("all redirected", replace(FINE, redirects=1)),
    _worse("1 % redirected, not 0", replace(FINE, redirects=0.01), found=80),
    _worse("50 % later, of 200 ms", Side(median=0.2, times=1.5), Side(median=0.2)),
    _worse("twice as late, of 20 ms", Side(times=2)),
)


def seen(truth: Truth, seed: int) -> tuple[Verdict, ...]:
    """What each rule comes to in one canary."""
    chance = np.random.default_rng([seed, 71])
    found = stream(chance, truth.canary, truth.control, bursts=truth.bursts, patience=truth.patience)
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


def is_red(truth: Truth, runs: Sequence[tuple[Verdict, ...]]) -> bool:
    """Whether ours finds more or less than it must, by more than three standard deviations of so few runs."""
    for found, (least, most) in (("good", truth.good), ("harm", truth.harm)):
        share = sum(verdict.found == found for verdict, *_ in runs) / len(runs)
        if not all(
            sign * (share - bound / 100) >= -3 * math.sqrt(bound / 100 * (1 - bound / 100) / len(runs))
            for sign, bound in ((1, least), (-1, most))
        ):
            return True
    return False


def main() -> int:
    """Write the table into the page. Exit code 1 where a row is red."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5_000, help="canaries of each truth (5,000)")
    runs = parser.parse_args().runs
    lines = [f"| of {runs:,} canaries each | good enough | {' | '.join(RULES)} |", "|" + "---|" * (2 + len(RULES))]
    red = 0
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        chunks = [range(at, min(at + 50, runs)) for at in range(0, runs, 50)]
        for truth in TRUTHS:
            found = [run for some in processes.map(_some, [truth] * len(chunks), chunks) for run in some]
            lines.append(row(truth, found))
            red += is_red(truth, found)
            print(lines[-1], "RED" if is_red(truth, found) else "", flush=True)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    table = "\n".join(lines)
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
