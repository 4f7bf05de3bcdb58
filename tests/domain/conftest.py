"""Hypothesis profiles: the same few hundred examples in every run; nightly and soak look for new ones."""

import os
import sys
from dataclasses import asdict
from typing import Any

from hypothesis import settings

settings.register_profile("ci", max_examples=100, derandomize=True, deadline=None, database=None)
settings.register_profile("nightly", max_examples=1000, deadline=None)
settings.register_profile("soak", max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "20000")), deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What the machine of whole rollouts came to."""
    machine = sys.modules.get("tests.domain.laws.test_rollout_machine")
    if machine is not None and machine.TOTALS.runs:
        said = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in asdict(machine.TOTALS).items())
        terminalreporter.write_line(f"rollout machine: {said}")
