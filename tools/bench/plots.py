"""The results as pictures: throughput over size, latency distributions, time lines of rollouts.

`python -m tools.bench.plots` draws what is in tools/bench/results.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_OLD, _STARTING, _NEW = "#8a93a6", "#f0b95b", "#2f7ed8"
_MOST_LINES = 400


def throughput(cycles: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Deployments a second over the size of the fleet: a line for each kind of cycle, and for the floor."""
    lines: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for row in cycles:
        lines[row["what"]].append((row["deployments"], row["per_second"]))
    figure, axes = start_picture("Deployments a second, by the size of the fleet", "deployments", "a second")
    for what, points in lines.items():
        sizes, rates = zip(*sorted(points), strict=True)
        axes.plot(sizes, rates, marker="o", label=what)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return save_picture(figure, path)


def latencies(runs: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """From a change of a replica to the decision that follows, as a distribution for each number of workers."""
    figure, axes = start_picture(
        "From a replica's change to its rollout's next decision", "milliseconds", "share of decisions, %"
    )
    for run in runs:
        values = run["rollouts"]["decided_after_percentiles_ms"]
        count = run["workers"]
        axes.plot(values, range(len(values)), label=f"{count} worker{'s' * (count > 1)}")
    axes.set_xscale("log")
    axes.legend(frameon=False)
    return save_picture(figure, path)


def time_line(case: Mapping[str, Any], path: Path) -> Path:
    """A line for each replica of one rollout, from its creation until it leaves."""
    ends_at = case["wall_seconds"]
    title = f"{case['name']}: {case['wall_seconds']:.2f} s, ideal {case['ideal_seconds']:.0f} s"
    figure, axes = start_picture(title, "seconds since the rollout began", "replicas")
    for number, replica in enumerate(case["time_line"][:_MOST_LINES]):
        begins, leaves = replica["created"] or 0.0, replica["drained"] or ends_at
        if replica["created"] is None:
            _bar(axes, number, 0.0, leaves, _OLD)
            continue
        healthy = replica["healthy"] or leaves
        _bar(axes, number, begins, healthy, _STARTING)
        _bar(axes, number, healthy, leaves, _NEW)
    for colour, label in ((_OLD, "old, in traffic"), (_STARTING, "new, starting"), (_NEW, "new, healthy")):
        axes.plot([], [], color=colour, linewidth=5, label=label)
    axes.set_xlim(0, ends_at)
    axes.set_yticks([])
    axes.legend(frameon=False, loc="upper left")
    return save_picture(figure, path)


def draw(folder: Path) -> list[Path]:
    """A picture of each result in the folder that there is one for; returns their files."""
    drawn = []
    if cycle := _result(folder / "cycle.json"):
        drawn.append(throughput(cycle["rows"], folder / "throughput.png"))
    if storm := _result(folder / "storm.json"):
        drawn.append(latencies(storm["details"], folder / "latencies.png"))
    if rollouts := _result(folder / "rollouts.json"):
        drawn += [
            time_line(case, folder / f"rollout-{number}.png") for number, case in enumerate(rollouts["details"], 1)
        ]
    return drawn


def _result(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())) if path.exists() else {}


def start_panels(title: str, count: int) -> tuple[Figure, list[Axes]]:
    """Panels, one below the other, over one axis."""
    figure = _figure(figsize=(8, 1.8 * count))
    figure.suptitle(title)
    panels: list[Axes] = list(figure.subplots(count, 1, sharex=True))
    for axes in panels:
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels


def start_picture(title: str, across: str, up: str) -> tuple[Figure, Axes]:
    """An empty picture with these words at its edges."""
    figure = _figure(figsize=(8, 4.5), dpi=120)
    axes = figure.add_subplot()
    axes.set(title=title, xlabel=across, ylabel=up)
    axes.grid(visible=True, alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _figure(**size: Any) -> Figure:  # noqa: ANN401 -- as Matplotlib takes it
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  # slow to load, for pictures alone
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(layout="constrained", **size)
    FigureCanvasAgg(figure)
    return figure


def _bar(axes: Axes, number: int, begins: float, ends: float, colour: str) -> None:
    axes.barh(number, ends - begins, left=begins, height=0.8, color=colour, linewidth=0)


def save_picture(figure: Figure, path: Path) -> Path:
    """Write it, and return its file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path


if __name__ == "__main__":
    for picture in draw(Path("tools/bench/results")):
        print(picture)
