"""Whatever people and programs send: no traceback, nothing unanswered, nobody dies, no refusal changes anything.

A failure names the seed and the number of its input: ROLLWAY_SOAK_SEED=7 brings the same inputs again.
"""

import os
from collections import Counter
from random import Random, SystemRandom

import pytest

from tests.fuzz.surfaces import SURFACES
from tests.fuzz.world import World
from tests.support.people.soak_report import leave, size

QUICK = 0
WANTED = size("inputs", quick=QUICK)
SEED = os.environ.get("ROLLWAY_SOAK_SEED") or ("1" if WANTED == QUICK else str(SystemRandom().randrange(10**6)))
THROWN: Counter[str] = Counter()


@pytest.mark.parametrize("name", SURFACES)
def test_whatever_is_sent_is_answered_and_a_refusal_changes_nothing(world: World, name: str) -> None:
    surface = SURFACES[name]
    count = round(WANTED * surface.share) or surface.quick
    for number in range(count):
        try:
            surface.throw(world, Random(f"{SEED} {name} {number}"))
        except Exception as error:
            error.add_note(f"ROLLWAY_SOAK_SEED={SEED}, input {number} of {name}")
            raise
    world.is_well()
    THROWN[name] = count
    leave("inputs", checks=sum(THROWN.values()), seed=SEED, inputs=dict(THROWN))
