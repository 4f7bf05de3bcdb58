"""`make mutants`: a sample of mutants of domain/, each run through the pure tests of `make test` until one fails.

A mutant that no test finds survives: a rule is missing in the tests, or the code says more than it needs to. The same
seed gives the same sample, and the tests draw the same examples each time, so a result can be had again.
"""

import argparse
import os
import random
import resource
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import hypothesis  # noqa: F401  the children need not import them
import pydantic  # noqa: F401
import pytest
from rich.console import Console

from tests.apart import APART
from tools.mutants.explained import EXPLAINED
from tools.mutants.mutant import Imported, Mutant, all_mutants

PURE_TESTS = ("tests/domain", "tests/traffic", "tests/reference")
KILLED_AT_LEAST = 0.95
CONSOLE = Console(markup=False, highlight=False, soft_wrap=True)
MEMORY = 2 * 2**30
OPTIONS = ("-xq", "--assert=plain", "-pno:cacheprovider", "-otimeout=0")


def main() -> int:
    """Exit code 0 when enough were killed and every survivor is explained."""
    arguments = _parse()
    mutants = all_mutants()
    chosen = [mutant for mutant in mutants if any(word in f"{mutant.path} {mutant.name}" for word in arguments.only)]
    sample = random.Random(arguments.seed).sample(chosen, min(arguments.sample, len(chosen)))
    began = time.monotonic()
    seconds = _seconds_of_the_tests()
    survivors = [mutant for mutant, killed in _judge(sample, seconds, arguments.jobs) if not killed]
    unexplained = [mutant for mutant in survivors if mutant.name not in EXPLAINED]
    killed = len(sample) - len(survivors)
    CONSOLE.print(
        f"\n{killed} of {len(sample)} killed ({killed / len(sample):.1%}), {len(unexplained)} survivors not explained;"
    )
    CONSOLE.print(f"{len(mutants):,} mutants are possible; seed {arguments.seed}, {time.monotonic() - began:.0f} s")
    return 1 if unexplained or killed < KILLED_AT_LEAST * len(sample) else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=200, help="how many mutants")
    parser.add_argument("--seed", type=int, default=7, help="which ones")
    parser.add_argument("--only", nargs="+", default=[""], help="those whose file or name contains one of these")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at a time")
    return parser.parse_args()


def _seconds_of_the_tests() -> int:
    """How much processor time the tests may take: thrice what they take when nothing is wrong."""
    os.environ["HYPOTHESIS_PROFILE"] = "mutants"
    before = _processor_seconds()
    pid = _fork(None, 600)
    if os.waitpid(pid, 0)[1] != 0:
        sys.exit(f"the tests fail without a mutant: pytest {' '.join(PURE_TESTS)}")
    return 3 * int(_processor_seconds() - before + 1)


def _processor_seconds() -> float:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def _judge(mutants: Iterable[Mutant], seconds: int, jobs: int) -> Iterator[tuple[Mutant, bool]]:
    """Each with whether it was killed, as they end."""
    running: dict[int, Mutant] = {}
    for mutant in mutants:
        if len(running) == jobs:
            yield _ended(running)
        running[_fork(mutant, seconds)] = mutant
    while running:
        yield _ended(running)


def _ended(running: dict[int, Mutant]) -> tuple[Mutant, bool]:
    pid, status = os.wait()
    mutant, killed = running.pop(pid), status != 0
    if killed:
        CONSOLE.print(".", end="")
    else:
        CONSOLE.print(f"\n{mutant.name}\n{mutant.diff()}\n{EXPLAINED.get(mutant.name, 'NOT EXPLAINED')}")
    return mutant, killed


def _fork(mutant: Mutant | None, seconds: int) -> int:
    """The pid of a process that ends with what pytest ends with. One that never ends is ended, which kills it too."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        if mutant is not None:
            sys.meta_path.insert(0, Imported(mutant))
        os._exit(any(pytest.main([*OPTIONS, *files]) for files in _files_of_tests(mutant) if files))
    finally:
        os._exit(1)


def _files_of_tests(mutant: Mutant | None) -> tuple[list[str], list[str]]:
    """First those that speak of the mutant's module, which mostly find it; then the others."""
    there = [file for folder in PURE_TESTS for file in sorted(Path(folder).rglob("test_*.py"))]
    files = [file for file in there if APART.keys().isdisjoint(map(str, (file, *file.parents)))]
    files.sort(key=lambda file: "laws" in file.parts)  # tables before laws, which take longer
    near = [file for file in files if mutant is not None and mutant.module in file.read_text()]
    return [str(file) for file in near], [str(file) for file in files if file not in near]


if __name__ == "__main__":
    sys.exit(main())
