"""Hypothesis profiles: the same few hundred examples in every run; nightly and soak look for new ones."""

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("ci", max_examples=100, derandomize=True, deadline=None, database=None)
settings.register_profile("nightly", max_examples=1000, deadline=None)
settings.register_profile("soak", max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "20000")), deadline=None)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
settings.load_profile(PROFILE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Looking for new examples takes longer than a test may take otherwise."""
    for item in items:
        if PROFILE != "ci" and item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(3600))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What the machine of whole rollouts came to."""
    machine = sys.modules.get("tests.domain.laws.test_rollout_machine")
    if machine is not None and machine.TOTALS.runs:
        said = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in asdict(machine.TOTALS).items())
        terminalreporter.write_line(f"rollout machine: {said}")
