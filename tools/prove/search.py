"""Breadth first through every state that can be reached, those with the fewest misfortunes and commands first.

safety      at every step, the laws; the first broken one ends the search
liveness    the steps of a kind world lead in no circle, and where they end it rests: ready and complete, or destroyed
"""

from array import array
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from time import process_time

from tools.prove.key import key_of
from tools.prove.laws.every_state import rests
from tools.prove.laws.people import helper, people
from tools.prove.proxies import proxies
from tools.prove.state import Left, Move, State
from tools.prove.world import freezes, replicas, sleepers, time, workers

Path = tuple[int, ...]
"""The numbers of the moves that lead to a state, each among all moves of the state before."""


def moves(state: State) -> list[Move]:
    """Everything that can happen in a state; what a kind world does is marked."""
    asked = list(proxies(state))
    awaited = any(move.kind for move in asked)
    found = [
        *workers(state),
        *replicas(state),
        *sleepers(state),
        *asked,
        *freezes(state),
        *time(state, awaited=awaited),
    ]
    if not any(move.kind for move in found) and (help_comes := helper(state)):
        found.append(help_comes)
    return [*found, *people(state)]


@dataclass(slots=True)
class Found:
    """What a search came to. `law`: which one is broken, at the end of `path`."""

    states: int = 0
    transitions: int = 0
    seconds: float = 0
    law: str | None = None
    path: Path = ()


@dataclass(slots=True)
class Search:
    """The states by number, in the order in which they were found."""

    start: State
    numbers: dict[bytes, int] = field(default_factory=dict)
    budgets: list[int] = field(default_factory=list)
    """For each state the bits of the budgets, of misfortunes and commands, that it was reached with, or with more."""
    first: "array[int]" = field(default_factory=lambda: array("q"))
    """For each state its first visit. It is visited again with another budget, with which more can happen."""
    parents: "array[int]" = field(default_factory=lambda: array("q"))
    """For each visit the one before, whose event led here."""
    events: "array[int]" = field(default_factory=lambda: array("H"))
    kind: list[tuple[int, ...] | None] = field(default_factory=list)
    """For each state where the steps of a kind world lead; None for one in which it rests."""
    queues: list[deque[tuple[int, int, State]]] = field(default_factory=list)
    """Visits to come: each with the number of its state."""

    def run(self, most_states: int | None = None) -> Found:
        """Visit them all, or until a law is broken."""
        began, transitions = process_time(), 0
        self.queues = [deque() for _ in range(self.start.left.together + 1)]
        self._reached(self.start, 0, 0)
        for visit, number, state in self._next():
            kind = []
            for event, move in enumerate(moves(state)):
                transitions += 1
                if move.broken is not None:
                    return self._found(began, transitions, move.broken, (*self.path(visit), event))
                to = self._reached(move.state, visit, event)
                if move.kind:
                    kind.append(to)
            self.kind[number] = tuple(kind) if kind or not rests(state) else None
            if most_states is not None and len(self.budgets) > most_states:
                raise RuntimeError(f"more than {most_states} states")
        if stuck := self._stuck():
            return self._found(began, transitions, stuck[1], self.path(self.first[stuck[0]]))
        return self._found(began, transitions)

    def path(self, visit: int) -> Path:
        """How it came to a visit."""
        steps = []
        while visit:
            steps.append(self.events[visit])
            visit = self.parents[visit]
        return tuple(reversed(steps))

    def _next(self) -> Iterator[tuple[int, int, State]]:
        while queue := next((queue for queue in self.queues if queue), None):
            yield queue.popleft()

    def _reached(self, state: State, parent: int, event: int) -> int:
        """Its number. Visited again only with more of a budget than before."""
        key, left = key_of(state), state.left
        number = self.numbers.setdefault(key, len(self.budgets))
        if number == len(self.budgets):
            self.budgets.append(0)
            self.first.append(len(self.parents))
            self.kind.append(())
        if not self.budgets[number] & _bit(*left):
            self.budgets[number] |= _no_more_than(left)
            self.queues[self.start.left.together - left.together].append((len(self.parents), number, state))
            self.parents.append(parent)
            self.events.append(event)
        return number

    def _stuck(self) -> tuple[int, str] | None:
        """A state at which a kind world ends without rest, or that it comes back to for ever."""
        for number, kind in enumerate(self.kind):
            if kind == ():
                return number, "a kind world always comes to rest: here nothing more happens"
        circle = in_a_circle([kind or () for kind in self.kind])
        return None if circle is None else (circle, "a kind world always comes to rest: here it goes round in circles")

    def _found(self, began: float, transitions: int, law: str | None = None, path: Path = ()) -> Found:
        return Found(len(self.budgets), transitions, process_time() - began, law, path)


def _bit(misfortunes: int, commands: int, together: int) -> int:
    return 1 << (misfortunes * 64 + commands * 8 + together)


@cache
def _no_more_than(left: Left) -> int:
    fewer = product(*(range(amount + 1) for amount in left))
    return sum(_bit(*amounts) for amounts in fewer)


def in_a_circle(leads_to: list[tuple[int, ...]]) -> int | None:
    """The first number from which one gets back to itself; None if there is none."""
    open_, done = bytearray(len(leads_to)), bytearray(len(leads_to))
    for root in range(len(leads_to)):
        way = [] if done[root] else [(root, iter(leads_to[root]))]
        open_[root] = not done[root]
        while way:
            number, rest = way[-1]
            step = next(rest, None)
            if step is None:
                open_[number], done[number] = 0, 1
                way.pop()
            elif open_[step]:
                return step
            elif not done[step]:
                open_[step] = 1
                way.append((step, iter(leads_to[step])))
    return None
