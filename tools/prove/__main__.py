"""`make prove`: every reachable state of small rollouts, visited with the code that ships.

Prints a table in Markdown, what was left out, and a film of each law that is broken. Exit code 0 when none is. The part
by default takes some 35 minutes on two free cores, that with --whole several times as long, by an estimate.
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from time import monotonic

from tools.prove.film import beside, film
from tools.prove.laws.pairs import first_unlike_pair
from tools.prove.search import Found, Search
from tools.prove.starts import SEARCHED, Start, starts
from tools.prove.state import Left

MOST = 2
"""Misfortunes, and commands, as many in all; with the whole, one replica and the defaults as many of both."""
MOST_ASKED = 2
"""Replicas with which commands of people, and two misfortunes of a canary, are tried, unless the whole is asked for."""
DEEPER = (
    *(
        (Start(strategy, (("steps", ("5%",)),) if strategy == "canary" else (), 1), Left(2, 1, 3))
        for strategy in SEARCHED
    ),
    (Start("blue_green", (), 2), Left(1, 2, 3)),
)
"""Where three are tried together."""
CHUNK = 20_000
FIGURES = ("states", "transitions", "seconds")


@dataclass(frozen=True, slots=True)
class Job:
    """A start, and what may befall it."""

    start: Start
    left: Left


def jobs(replicas: int, together: int, commands: int, only: str, *, whole: bool) -> list[Job]:
    """For every start, those with the most states first, so that no core is idle in the end."""
    found = []
    for start in starts(replicas):
        is_small = whole or _most(start) <= MOST_ASKED
        most = together if is_small or start.strategy != "canary" else min(1, together)
        found.append(Job(start, Left(min(MOST, most), min(commands, most) if is_small else 0, most)))
    found += [Job(start, left) for start, left in DEEPER if min(commands, together) == MOST]
    found = [job for job in found if only in job.start.name]
    is_deep = whole and min(commands, together) == MOST
    deep = [Job(Start(strategy, (), 1), Left(MOST, MOST, 2 * MOST)) for strategy in SEARCHED if is_deep]
    found += [job for job in deep if only in job.start.name]
    return sorted(found, key=lambda job: (-job.left.together, -_most(job.start), job.start.name))


def _most(start: Start) -> int:
    return max(start.n, start.size or 0)


def left_out(arguments: argparse.Namespace) -> str:
    """What this part does not visit, in words."""
    without = []
    if not arguments.whole:
        without.append(f"commands of people with more than {MOST_ASKED} replicas")
        without.append(f"two misfortunes of a canary with more than {MOST_ASKED} replicas")
        without.append(f"{MOST} misfortunes and {MOST} commands together")
    if arguments.commands < MOST:
        without.append(f"more than {arguments.commands} commands")
    if arguments.only:
        without.append(f"every start without {arguments.only!r} in its name")
    without.append(f"more than {arguments.replicas} replicas")
    return f"Left out: {'; '.join(without)}." + ("" if arguments.whole else " --whole visits the first three.")


def visited(job: Job) -> tuple[Job, Found, str]:
    """What the search came to, and the film if it found something."""
    state = job.start.state(job.left)
    found = Search(state).run()
    return job, found, film(state, found.path, found.law) if found.law else ""


def table(results: Sequence[tuple[Job, Found, str]]) -> str:
    """One line for each strategy and size of the deployment."""
    lines = ["| strategy | replicas | misfortunes + commands | starts | states | transitions | seconds of a core |"]
    lines.append("|---|---|---|---|---|---|---|")
    total = [0, 0, 0.0]
    for (strategy, n, left), group in groupby(sorted(results, key=_row), key=_row):
        found = [visited for _, visited, _ in group]
        figures = [sum(getattr(visited, figure) for visited in found) for figure in FIGURES]
        total = [sum(both) for both in zip(total, figures, strict=True)]
        lines.append(f"| {strategy} | {n} | {left} | {len(found)} | {_said(figures)} |")
    return "\n".join((*lines, f"| all | | | {len(results)} | {_said(total)} |"))


def _row(result: tuple[Job, Found, str]) -> tuple[str, int, str]:
    job = result[0]
    left = job.left
    return job.start.strategy, job.start.n, f"{left.misfortunes} + {left.commands}, {left.together} in all"


def _said(figures: Sequence[float]) -> str:
    return " | ".join(f"{figure:,.0f}" for figure in figures)


def main() -> int:
    """Search, compare pairs, print."""
    arguments = _parse()
    began = monotonic()
    results: list[tuple[Job, Found, str]] = []
    todo = jobs(arguments.replicas, arguments.together, arguments.commands, arguments.only, whole=arguments.whole)
    with ProcessPoolExecutor(arguments.cores) as pool:
        chunks = range(0, arguments.pairs, CHUNK)
        unlike = pool.map(first_unlike_pair, chunks, [min(CHUNK, arguments.pairs - chunk) for chunk in chunks])
        for job, found, shown in pool.map(visited, todo):
            results.append((job, found, shown))
            _tell(
                f"{job.start.name}: {found.states:,} states, {found.transitions:,} transitions, {found.seconds:,.0f} s"
            )
            if shown:
                print(f"{job.start.name}\n{shown}\n")
        pairs = [pair for pair in unlike if pair]
    for pair in pairs:
        print(f"{beside(pair)}\n")
    print(table(results))
    print(
        f"\n{arguments.pairs:,} random pairs of states with equal keys: {len(pairs)} from which different things follow"
    )
    print(f"\n{left_out(arguments)}")
    _tell(f"{monotonic() - began:.0f} s on {arguments.cores} processes")
    return 1 if pairs or any(shown for _, _, shown in results) else 0


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make prove", description=__doc__)
    parser.add_argument("--replicas", type=int, default=3, help="deployments with 1 to this many")
    parser.add_argument("--together", type=int, default=2, help="misfortunes and commands in all, at most 2 of each")
    parser.add_argument("--commands", type=int, default=MOST, choices=range(MOST + 1), help="of people; 0 for none")
    parser.add_argument("--whole", action="store_true", help="everything, several times as long")
    parser.add_argument("--only", default="", help="starts with this in their name, such as 'blue_green n=2'")
    parser.add_argument("--pairs", type=int, default=200_000, help="random pairs of states with equal keys")
    parser.add_argument("--cores", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
