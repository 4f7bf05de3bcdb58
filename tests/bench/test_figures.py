"""Distributions in a few figures, and the pictures that are drawn of them."""

import json
from pathlib import Path
from typing import Any

from tools.bench.figures import percentiles, spread
from tools.bench.plots import draw


def test_the_spread_of_a_hundred_and_one_values() -> None:
    assert spread([float(number) for number in range(100, -1, -1)]) == {"count": 101, "p50": 50, "p99": 99, "max": 100}


def test_the_spread_of_one_value_and_of_none() -> None:
    assert spread([7.0]) == {"count": 1, "p50": 7.0, "p99": 7.0, "max": 7.0}
    assert spread([]) == {"count": 0}


def test_percentiles_go_from_the_least_to_the_most() -> None:
    found = percentiles([3.0, 1.0, 2.0])
    assert (found[0], found[50], found[100], len(found)) == (1.0, 2.0, 3.0, 101)
    assert percentiles([]) == []


def test_each_measurement_has_its_picture_and_what_was_not_measured_has_none(tmp_path: Path) -> None:
    assert draw(tmp_path) == []
    route = {"created": 0.1, "started": 0.2, "healthy": 1.2, "drained": None}
    old = {"created": None, "started": None, "healthy": None, "drained": 1.3}
    case = {"name": "1 replica", "wall_seconds": 1.3, "ideal_seconds": 1.0, "time_line": [route, old]}
    results: dict[str, Any] = {
        "cycle": {"rows": [{"what": "floor", "deployments": size, "per_second": 9000.0} for size in (1000, 100)]},
        "storm": {"details": [{"workers": 1, "rollouts": {"decided_after_percentiles_ms": percentiles([1.0, 20.0])}}]},
        "rollouts": {"details": [case]},
    }
    for name, result in results.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(result))
    drawn = draw(tmp_path)
    assert [path.name for path in drawn] == ["throughput.png", "latencies.png", "rollout-1.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)
