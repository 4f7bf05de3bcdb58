"""How many requests it takes to see how much worse a canary is.

`python -m tools.bench.canaries.canary` writes the table of docs/internals/canary-judge.md, and its picture.
"""

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from domain.judge.evalues import Counts, harm
from domain.model.canary import EValue
from tools.bench.plots import save_picture, start_picture

PAGE, PICTURE = Path("docs/internals/canary-judge.md"), Path("docs/pictures/canary.png")
BEGIN, END = "<!-- canary -->\n", "<!-- /canary -->"
RUNS, SECONDS, A_SECOND, WEIGHT = 200, 600, 100, 0.05
LIMIT = math.log(1 / 0.01)
CONTROLS = (0.0, 0.001, 0.01, 0.05)
CANARIES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 1.0)


class Difference(NamedTuple):
    """Two rates of failures, how many runs of 100 found harm, and medians until then: requests, failures, seconds."""

    control: float
    canary: float
    found: float
    requests: float
    failed: float
    seconds: float


def measured(control: float, canary: float) -> Difference:
    """Of `RUNS` canaries of ten minutes."""
    chance = np.random.default_rng(71)
    ends = [end for _ in range(RUNS) if (end := _end(_world(chance, control, canary))) is not None]
    if not ends:
        return Difference(control, canary, 0, math.nan, math.nan, math.nan)
    requests, failed, seconds = (statistics.median(column) for column in zip(*ends, strict=True))
    return Difference(control, canary, 100 * len(ends) / RUNS, requests, failed, seconds)


def _world(chance: np.random.Generator, control: float, canary: float) -> list[Counts]:
    answers = chance.poisson(A_SECOND, SECONDS)
    new = chance.binomial(answers, WEIGHT)
    columns = (new, chance.binomial(new, canary), answers - new, chance.binomial(answers - new, control))
    return [Counts(new, failed, old, others) for new, failed, old, others in np.stack(columns, axis=1).tolist()]


def _end(world: Sequence[Counts]) -> tuple[int, int, int] | None:
    """The canary's requests and failures, and the seconds, until harm is found, if it is."""
    shown = EValue()
    for seconds, counts in enumerate(world, start=1):
        shown = harm(shown, counts, 1)
        if shown.highest >= LIMIT:
            seen = world[:seconds]
            return sum(each.canary for each in seen), sum(each.canary_failed for each in seen), seconds
    return None


def table(differences: Sequence[Difference]) -> str:
    """In Markdown."""
    rows = [
        "| control | canary | found in 10 minutes | requests of the canary | failed of them | seconds |",
        "|" + "---|" * 6,
    ]
    for each in differences:
        found = f"{each.found:.1f} %"
        ends = (
            "- | - | -"
            if math.isnan(each.requests)
            else f"{each.requests:,.0f} | {each.failed:.0f} | {each.seconds:.0f}"
        )
        rows.append(f"| {100 * each.control:g} % | {100 * each.canary:g} % | {found} | {ends} |")
    return "\n".join(rows) + "\n"


def drawn(differences: Sequence[Difference], path: Path) -> Path:
    """A line for each rate of the control."""
    figure, axes = start_picture(
        "Requests until harm is found, where 9 of 10 find it", "canary fails, %", "requests to the canary"
    )
    for control in CONTROLS:
        points = [
            (100 * each.canary, each.requests) for each in differences if each.control == control and each.found >= 90
        ]
        if points:
            across, up = zip(*points, strict=True)
            axes.plot(across, up, marker="o", label=f"control {100 * control:g} %")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.legend(frameon=False)
    return save_picture(figure, path)


def main() -> None:
    """Write the table into the page, and the picture."""
    found = [measured(control, canary) for control in CONTROLS for canary in CANARIES if canary > control]
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + table(found) + "\n" + END + rest.partition(END)[2], encoding="utf-8")
    print(table(found), drawn(found, PICTURE), sep="\n")


if __name__ == "__main__":
    main()
