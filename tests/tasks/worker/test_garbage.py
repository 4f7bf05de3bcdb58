"""A worker's garbage collector: what was imported is left out, and what a chunk makes is looked through seldom."""

import subprocess
import sys

_SAID = """
import gc
from tasks.worker.composition import collect_seldom
others = gc.get_threshold()[1:]
collect_seldom()
print(gc.get_freeze_count() > 1000, gc.get_threshold()[0], gc.get_threshold()[1:] == others)
"""


def test_imports_are_frozen_and_many_objects_are_looked_through_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", _SAID], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["True", "10000", "True"]
