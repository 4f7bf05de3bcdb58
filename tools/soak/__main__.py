"""`make soak`: the proofs in their long form, with a summary as text and as JSON in tools/bench/results/soak.json.

machine    whole rollouts of the pure core, by Hypothesis
walks      random walks through what may befall a rollout, by the laws of `make prove`
moments    what people are told of a wait, in so many moments of each strategy
judge      canaries in simulated worlds: how often their judge is wrong
storm      coordinators, probers, users and cut connections on a real Postgres
chaos      real processes, killed at random moments
inputs     files, command lines, payloads, messages and HTTP that nobody should send
devices    two deployments that want one device, with four workers
gpus       replicas that die when they meet on a device, while workers and replicas are killed
steering   two people and a service, who steer one deployment at once for a minute
http       what the OpenAPI description allows, and what it does not, by tokens of each role
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.support.people.soak_report import FOLDER

RESULT = Path("tools/bench/results/soak.json")


@dataclass(frozen=True, slots=True)
class Part:
    """One test that knows a long form. `size`: how many rollouts, or inputs, it is asked for."""

    name: str
    test: str
    size: int


PARTS = (
    Part("machine", "tests/domain/laws/test_rollout_machine.py", 20_000),
    Part("walks", "tests/prove/walks/test_walks.py", 5_000),
    Part("moments", "tests/domain/laws/test_whys.py", 10_000),
    Part("judge", "tests/domain/laws/judged/test_judge.py", 2_000),
    Part("judge_slow", "tests/domain/laws/judged/test_judge_slow.py", 200),
    Part("storm", "tests/tasks/cycle/test_storm.py", 200),
    Part("chaos", "tests/e2e/faults/test_random_faults.py", 20),
    Part("inputs", "tests/fuzz/test_inputs.py", 5_000),
    Part("devices", "tests/db/replicas/test_devices.py", 1_000),
    Part("gpus", "tests/e2e/rollouts/test_gpus.py", 20),
    Part("steering", "tests/e2e/rollouts/test_steering_at_once.py", 40),
    Part("http", "tests/api/people/test_schema.py", 10_000),
)


def main() -> int:
    """Exit code 0 when every part passed."""
    arguments = _parse()
    with tempfile.TemporaryDirectory() as folder:
        results = [_run(part, arguments.scale, Path(folder)) for part in PARTS if part.name in arguments.parts]
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(results, indent=2) + "\n")
    _show(results)
    return 0 if all(result["passed"] for result in results) else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make soak", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--parts", nargs="*", default=[part.name for part in PARTS], help="which ones to run")
    parser.add_argument("--scale", type=float, default=1.0, help="0.1 runs a tenth of each")
    return parser.parse_args()


def _run(part: Part, scale: float, folder: Path) -> dict[str, Any]:
    size = max(1, round(part.size * scale))
    environment = {**os.environ, FOLDER: str(folder), f"ROLLWAY_SOAK_{part.name.upper()}": str(size)}
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-o", "timeout=0", part.test]
    done = subprocess.run(command, env=environment, check=False)
    left = folder / f"{part.name}.json"
    figures = json.loads(left.read_text()) if left.exists() else {}
    return {"part": part.name, "passed": done.returncode == 0, "seconds": round(time.monotonic() - began, 1), **figures}


def _show(results: list[dict[str, Any]]) -> None:
    table = Table("part", "", "rollouts", "faults", "checks", "seed", "worst recovery", "time", title="make soak")
    for result in results:
        worst = result.get("worst_recovery_seconds")
        table.add_row(
            result["part"],
            "passed" if result["passed"] else "FAILED",
            *(str(result.get(name, "-")) for name in ("rollouts", "faults", "checks", "seed")),
            "-" if worst is None else f"{worst:.1f} s",
            f"{result['seconds']} s",
        )
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
