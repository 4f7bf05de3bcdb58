"""Random walks where a whole search is too large: more misfortunes and commands, more replicas, any settings.

A walk that breaks a law is named by its seed and its number, and printed as a film.
"""

import os
from collections.abc import Iterator
from random import Random, SystemRandom
from typing import Any

from tests.support.people.soak_report import leave, size
from tests.support.pictures.specs import SPECS
from tools.prove.film import film
from tools.prove.search import Path, moves
from tools.prove.starts import SEARCHED, Start
from tools.prove.state import Left

QUICK = 60
WALKS = size("walks", QUICK)
SEED = int(os.environ.get("ROLLWAY_SOAK_SEED") or (1 if WALKS == QUICK else SystemRandom().randrange(10**6)))
LONGEST = 80
MOST_REPLICAS = 4
KINDLY = 0.6
"""How often a walk takes what a kind world does."""


def walks(seed: int, count: int) -> Iterator[tuple[Start, Path, str | None]]:
    """Each walk with the law that it broke. All that may follow a state on its way is judged, not one step alone."""
    for number in range(count):
        chance = Random(f"{seed}.{number}")
        start = _begun(chance)
        yield start, *_walk(start, chance)


def _begun(chance: Random) -> Start:
    strategy = chance.choice(list(SEARCHED))
    spec: dict[str, Any] = chance.choice((*SEARCHED[strategy], *SPECS[strategy].told))
    roomy = {"max_surge": chance.randint(2, 5)} if "max_surge" in spec and chance.random() < 0.5 else {}
    n, size_with_it = chance.randint(1, MOST_REPLICAS), chance.choice((None, None, None, 0, 1, 3, 6))
    stands: dict[str, Any] = chance.choice(({}, {}, {"held": True}, {"in_use": True}, {"moved": chance.randint(1, 9)}))
    paused = "moved" in stands and chance.random() < 0.5
    return Start(strategy, tuple({**spec, **roomy}.items()), n, size_with_it, **stands, paused=paused)


def _walk(start: Start, chance: Random) -> tuple[Path, str | None]:
    state = start.state(Left(4, 3, 7))
    path: list[int] = []
    for _ in range(LONGEST):
        following = moves(state)
        broken = next((number for number, move in enumerate(following) if move.broken), None)
        if broken is not None:
            return (*path, broken), following[broken].broken
        kind = [number for number, move in enumerate(following) if move.kind]
        if not following:
            break
        number = chance.choice(kind if kind and chance.random() < KINDLY else range(len(following)))
        path.append(number)
        state = following[number].state
    return tuple(path), None


def test_no_walk_breaks_a_law() -> None:
    steps = 0
    for number, (start, path, law) in enumerate(walks(SEED, WALKS)):
        assert law is None, (
            f"seed {SEED}, walk {number}: {start.name}\n{film(start.state(Left(4, 3, 7)), path, law or '')}"
        )
        steps += len(path)
    leave("walks", rollouts=WALKS, checks=steps, seed=SEED)
