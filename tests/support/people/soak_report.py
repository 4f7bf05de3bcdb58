"""Where the long tests leave their figures for `make soak`; in `make test` nobody asks for them."""

import json
import os
from pathlib import Path
from typing import Any

FOLDER = "ROLLWAY_SOAK_REPORT"


def size(name: str, quick: int) -> int:
    """How much of a test to run: the quick size, unless `make soak` says more."""
    return int(os.environ.get(f"ROLLWAY_SOAK_{name.upper()}") or quick)


def leave(part: str, **figures: Any) -> None:
    """Figures of one part: rollouts, faults, checks, worst_recovery_seconds, whatever it has."""
    folder = os.environ.get(FOLDER)
    if folder:
        Path(folder, f"{part}.json").write_text(json.dumps(figures))
