"""`make bench-against COMMIT=...`: pairs in turns of this tree and of that commit, and a verdict for each figure."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tools.bench.against.pairs import LEAST, Than, compared

_HERE = Path(__file__).parents[3]
_WORKS = ("tools/bench/against/work.py", "bench/against/work.py")
"""Each tree has its own, since modules are renamed; figures are compared by their names."""

Figures = Mapping[str, float]


def main() -> None:
    """Measure, and say what is faster and what is slower. Exits with 1 when anything is slower."""
    parser = argparse.ArgumentParser(prog="make bench-against", description="Pairs against a commit, some minutes.")
    parser.add_argument("commit", help="what this tree is held against, such as main or 4e2e249")
    parser.add_argument("--pairs", type=int, default=LEAST, help=f"how many; {LEAST}, the fewest, unless it is given")
    arguments = parser.parse_args()
    if arguments.pairs < LEAST:
        parser.error(f"--pairs: {arguments.pairs} cannot tell; {LEAST} are the fewest")
    console, pairs = Console(width=max(Console().width, 120)), list[tuple[Figures, Figures]]()
    with _tree_of(arguments.commit) as there:
        for number in range(arguments.pairs):
            first, second = (_HERE, there) if number % 2 else (there, _HERE)
            found = {tree: _measured(tree) for tree in (first, second)}
            pairs.append((found[_HERE], found[there]))
            console.print(f"pair {number + 1} of {arguments.pairs}")
    verdicts = [_row(name, pairs) for name in pairs[0][0] if name in pairs[0][1]]
    table = Table("figure", "there", "here", "here over there", "19 times of 20", "here is", title=arguments.commit)
    for row in verdicts:
        table.add_row(*row)
    console.print(table)
    if any(row[-1] == Than.SLOWER for row in verdicts):
        sys.exit(1)


@contextmanager
def _tree_of(commit: str) -> Iterator[Path]:
    """The files of that commit, in a folder that is gone at the end."""
    with tempfile.TemporaryDirectory(prefix="rollway-against-") as folder:
        archive = subprocess.run(["git", "archive", commit], cwd=_HERE, stdout=subprocess.PIPE, check=False)
        if archive.returncode:
            sys.exit(f"COMMIT: git knows no {commit} here")
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        yield Path(folder)


def _measured(tree: Path) -> Figures:
    """The work of one side, with the environment of this tree: its packages, and the other tree's code."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    work = next((tree / name for name in _WORKS if (tree / name).exists()), None)
    if work is None:
        sys.exit(f"{tree} has no {_WORKS[0]}")
    done = subprocess.run(
        [sys.executable, "-"], input=work.read_bytes(), cwd=tree, env=environment, capture_output=True, check=False
    )
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        sys.exit(f"what is measured does not run with {tree}: {last}")
    figures: Figures = json.loads(done.stdout)
    return figures


def _row(name: str, pairs: list[tuple[Figures, Figures]]) -> tuple[str, ...]:
    ratio, low, high = found = compared([here[name] / there[name] for here, there in pairs])
    here, there = (sorted(pair[side][name] for pair in pairs)[len(pairs) // 2] for side in (0, 1))
    return name, f"{there:.4g}", f"{here:.4g}", f"{ratio:.3f}", f"{low:.3f} to {high:.3f}", found.verdict.value


if __name__ == "__main__":
    main()
