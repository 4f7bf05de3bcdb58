"""The time for looking for new examples, and what the machine of whole rollouts came to, said at the end of a run."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Looking for new examples takes longer than a test may take otherwise."""
    if settings.get_current_profile_name() in ("nightly", "soak"):
        for item in items:
            if item.path.is_relative_to(Path(__file__).parent):
                item.add_marker(pytest.mark.timeout(3600))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What the machine of whole rollouts came to."""
    world = sys.modules.get("tests.support.worlds.rollout_world")
    if world is not None and world.TOTALS.runs:
        said = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in asdict(world.TOTALS).items())
        terminalreporter.write_line(f"rollout machine: {said}")
