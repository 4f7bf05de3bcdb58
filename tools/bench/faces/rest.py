"""What a whole stack costs at rest: each process of a real `rollway up` with Envoy and 20 replicas; and its start."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from stack.home.folder import Home
from stack.home.stack_state import read_state
from tools.bench.passes import middle, passes
from tools.bench.processor import own_seconds, processor_seconds

REPLICAS = 20
WORKERS = 2
_SETTLE_SECONDS = 25.0
"""Until then it reads as often as after any change."""
_ONE_BY_ONE = ("worker1", "worker2", "beat", "api", "people")
_PROGRAM = Path(sys.executable).with_name("rollway")
_FILE = {
    "deployment": "web",
    "replicas": REPLICAS,
    "revision": {
        "command": [sys.executable, "-m", "tools.bench.replica"],
        "working_directory": str(Path(__file__).parents[3]),
        "health_check": {"path": "/health"},
    },
    "policy": {"strategy": "rolling_update", "spec": {"max_surge": REPLICAS}},
}


def measure(*, full: bool) -> dict[str, Any]:
    """Shares of a core in turns, on one stack; and what three starts take, the first of which makes the database."""
    seconds = 60.0 if full else 31.0  # a long tick of each handler is in it
    with _stack() as (environment, home, first):
        starts = [first, *(_again(environment) for _ in range(2))]
        _rollway(environment, "apply", "-f", str(home.root / "web.json"), "--wait")
        time.sleep(_SETTLE_SECONDS)
        rows = [_shares(home, seconds) for _ in range(passes(full=full))]
    targets = {"all %": [row["all_%"] for row in rows], "ready s": starts[1:]}
    targets |= {f"{name} %": [row[f"{name}_%"] for row in rows] for name in _ONE_BY_ONE}
    return {"rows": [middle(rows)], "starts_s": [round(start, 2) for start in starts], "passes": targets}


@contextmanager
def _stack() -> Iterator[tuple[Mapping[str, str], Home, float]]:
    """Up, and the seconds until it was."""
    root = Path(tempfile.mkdtemp(prefix="rollway-rest-"))
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    environment = {**kept, "ROLLWAY_HOME": str(root)}
    (root / "web.json").write_text(json.dumps(_FILE))
    try:
        yield environment, Home(root), _up(environment)
    finally:
        _rollway(environment, "down")
        shutil.rmtree(root, ignore_errors=True)


def _again(environment: Mapping[str, str]) -> float:
    _rollway(environment, "down")
    return _up(environment)


def _up(environment: Mapping[str, str]) -> float:
    began = time.monotonic()
    _rollway(environment, "up", "--workers", str(WORKERS))
    return time.monotonic() - began


def _rollway(environment: Mapping[str, str], *command: str) -> None:
    subprocess.run([_PROGRAM, *command], env=environment, check=True, capture_output=True)


def _shares(home: Home, seconds: float) -> dict[str, float]:
    """Percent of one core, of each part with what it started but replicas, and of all together."""
    state = read_state(home)
    assert state
    parts = {part.name: psutil.Process(part.process.pid) for part in state.parts if part.process}
    parts["supervisor"] = psutil.Process(state.supervisor.pid)
    before, began = _spent(parts), time.monotonic()
    time.sleep(seconds)
    after, took = _spent(parts), time.monotonic() - began
    shares = {f"{name}_%": 100 * (after[name] - before[name]) / took for name in sorted(parts)}
    return {"all_%": sum(shares.values()), **shares}


def _spent(parts: Mapping[str, psutil.Process]) -> dict[str, float]:
    """Each part alone where others, or replicas, are below it; Postgres with its connections."""
    return {
        name: processor_seconds(process) if name == "postgres" else own_seconds(process)
        for name, process in parts.items()
    }
