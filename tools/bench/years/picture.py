"""The samples as a picture: a panel for each kind of thing that could grow."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.bench.plots import save_picture, start_panels

PANELS: Mapping[str, tuple[float, Mapping[str, str]]] = {
    "rows": (
        1,
        {
            "history": "rows of deployment_history",
            "steps": "rows of rollout_steps",
            "replicas": "rows of routes",
            "request ids": "rows of commands",
            "revisions": "rows of revisions",
            "rollouts": "rows of rollouts",
        },
    ),
    "MB of the database": (1e6, {"": "bytes of the database"}),
    "kB of logs": (1e3, {"stack": "bytes of logs of the stack", "replicas": "bytes of logs of replicas"}),
    "MB of Valkey": (1e6, {"": "bytes of Valkey"}),
}
"""Below each title: the unit, and which samples are drawn under which name."""


def draw(names: Sequence[str], seconds: Sequence[float], rows: Sequence[Sequence[int]], path: Path) -> Path:
    """One panel below the other over the minutes; returns the file."""
    figure, panels = start_panels("Ten rollouts a minute, with what is kept counted in minutes", len(PANELS))
    minutes = [second / 60 for second in seconds]
    for axes, (title, (unit, lines)) in zip(panels, PANELS.items(), strict=True):
        for label, name in lines.items():
            column = names.index(name)
            axes.plot(minutes, [row[column] / unit for row in rows], label=label, linewidth=1)
        axes.set_ylim(bottom=0)
        axes.set_ylabel(title)
        if len(lines) > 1:
            axes.legend(frameon=False, fontsize=7, ncols=3, loc="lower right")
    panels[-1].set_xlabel("minutes")
    return save_picture(figure, path)
