"""Where the search starts from: small rollouts by every strategy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any

from domain.model.deployment import StartFailures
from domain.steering.activation import activate
from domain.strategies.builtin import parse_policy
from domain.text.numbers import number_of
from tests.support.people.people import asking, request
from tests.support.pictures.pictures import NOW, READY, V1, V2, resting
from tests.support.pictures.specs import QUICK_JUDGE, SPECS
from tools.prove.laws.people import COMMANDS, asked
from tools.prove.search import moves
from tools.prove.state import Left, State

SEARCHED = {strategy: specs.searched or specs.told for strategy, specs in SPECS.items()}
PROGRESS_SECONDS = 600
FAILURE_BUDGET = 2
"""As many as there are misfortunes, so that a rollout can be given up."""

WITH_DEVICES: dict[str, Sequence[tuple[tuple[tuple[str, Any], ...], int, int]]] = {
    "rolling_update": (
        ((("max_unavailable", 1),), 1, 1),
        ((("max_unavailable", 1),), 2, 2),
        ((("max_unavailable", 1),), 2, 3),
        ((("max_surge", 0), ("max_unavailable", 1), ("pacing", "continuous")), 2, 2),
        ((), 2, 3),
        ((("max_unavailable", 1), ("sleep_seconds", 60)), 1, 1),
        ((("max_unavailable", 1), ("sleep_seconds", 60)), 2, 2),
    ),
    "blue_green": (((), 1, 2),),
    "recreate": (((), 2, 2),),
    "canary": (((("max_unavailable", 1),), 2, 2), ((), 2, 3)),
}
"""A spec, replicas and devices, by strategy: rollouts that can move."""

MOST_HELD = 2
"""Replicas of a start in a freeze or in use, so that every command is tried in one."""


@dataclass(frozen=True, slots=True)
class Start:
    """A rollout of v2 over `n` replicas of v1 that begins now.

    `size`: the one that comes with v2. `progress`: the seconds that it may take without progress. `held`: a freeze that
    pauses rollouts is on. `in_use`: the old revision has answered somebody, and the new one nobody yet. `moved`:
    so many moves of a kind world have happened, as far as it comes, and then it was `paused`. `is_undo`: v2 is what it
    goes back to. `devices`: where each replica needs one of them. `short_lives`: so many of v2 have just ended, and the
    last of them is up again.
    """

    strategy: str
    spec: tuple[tuple[str, Any], ...]
    n: int
    size: int | None = None
    progress: int | None = None
    held: bool = False
    in_use: bool = False
    moved: int = 0
    paused: bool = False
    is_undo: bool = False
    short_lives: int = 0
    devices: int | None = None

    @property
    def name(self) -> str:
        """For the table."""
        said = ", ".join(_said(name, value) for name, value in self.spec if value is not False)
        size = f" → {self.size}" if self.size is not None else ""
        progress = f", progress within {self.progress} s" if self.progress else ""
        held, in_use = ", held" if self.held else "", ", in use" if self.in_use else ""
        moved = f", {'paused ' if self.paused else ''}after {self.moved} moves" if self.moved else ""
        undo = ", an undo" if self.is_undo else ""
        lives = f", {self.short_lives} short lives" if self.short_lives else ""
        spec = f", {said}" if said else ""
        lives += f", {number_of(self.devices, 'device')}" if self.devices else ""
        return f"{self.strategy} n={self.n}{size}{spec}{progress}{held}{in_use}{moved}{undo}{lives}"

    def state(self, left: Left) -> State:
        """Right after the activation, or so many moves later."""
        limits = {"failure_budget": FAILURE_BUDGET, "progress_timeout_seconds": self.progress}
        policy = parse_policy({"strategy": self.strategy, "spec": dict(self.spec), "limits": limits})
        ready = resting(
            "■" * self.n + "|",
            self.n,
            READY,
            current_revision_id=V1,
            count_stopping=policy.spec.count_stopping,
            may_surge=policy.spec.may_surge,
        )
        wanted = replace(request(ready, V2, policy, desired=self.size), is_undo=self.is_undo)
        deployment = activate(ready, wanted, asking(ready, NOW)).deployment
        assert deployment.rollout is not None
        lives = self.short_lives
        failures = StartFailures(V2, lives, NOW, came_up_at=NOW, short_lives=lives) if lives else None
        rollout = replace(deployment.rollout, in_use=self.in_use)
        begun = replace(deployment, rollout=rollout, start_failures=failures)
        return self._moved(State(begun, NOW, NOW, policy, left, frozen=self.held, devices=self.devices))

    def _moved(self, state: State) -> State:
        for _ in range(self.moved):
            state = next((move.state for move in moves(state) if move.kind), state)
        pause = asked(state, "pause", COMMANDS["pause"]) if self.paused else None
        return pause.state if pause else state


def starts(most: int) -> Iterator[Start]:
    """Every spec with 1 to `most` replicas; the defaults with a size, a clock, held, in use, an undo, short lives."""
    for strategy, specs in SEARCHED.items():
        for n, spec in product(range(1, most + 1), specs):
            yield Start(strategy, tuple(spec.items()), n)
        for n, size in permutations(range(most + 1), 2):
            yield Start(strategy, (), n, size)
        yield Start(strategy, (), most, progress=PROGRESS_SECONDS)
        yield Start(strategy, (), min(most, MOST_HELD), held=True)
        yield from (Start(strategy, (), n, size, held=True) for n, size in ((1, 2), (2, 1)) if most >= MOST_HELD)
        yield Start(strategy, (), min(most, MOST_HELD), in_use=True)
        yield Start(strategy, (), 1, is_undo=True)
        yield Start(strategy, (), 1, short_lives=2)
        yield from (Start(strategy, spec, n, devices=devices) for spec, n, devices in WITH_DEVICES.get(strategy, ()))


def _said(name: str, value: object) -> str:
    if isinstance(value, dict):
        return f"{name} " + " ".join(f"{key}: {its}" for key, its in value.items() if key not in QUICK_JUDGE)
    return name if value is True else str(value) if isinstance(value, str) else f"{name} {value}"
