"""Processes that left their place to new ones: they go on with what they have under way, and end by themselves."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from stack.home.state import PartState
from stack.supervisor.child.spawn import AdoptedProcess, Process
from stack.supervisor.stop import stop_together

_SUFFIX = "-leaving"


def leaving(name: str) -> str:
    """Name the process that leaves the place of this part."""
    return name + _SUFFIX


@dataclass(slots=True)
class Leaving:
    """Knows them by their part. None of them may be ended while its successor lives, which would end with it."""

    _processes: dict[str, tuple[PartState, Process]] = field(default_factory=dict)

    def add(self, state: PartState, process: Process | None) -> None:
        """Know this process of a part as one that leaves; without one there is nothing to wait for."""
        if process is not None:
            self._processes[state.name] = replace(state, name=leaving(state.name), condition="draining"), process

    def adopt(self, found: Iterable[PartState]) -> None:
        """Take over those that an earlier supervisor left."""
        for state in found:
            if state.is_leaving and state.process is not None:
                self._processes[state.name.removesuffix(_SUFFIX)] = state, AdoptedProcess(state.process)

    def states(self) -> tuple[PartState, ...]:
        """Return those that have not ended."""
        self._processes = {name: its for name, its in self._processes.items() if its[1].poll() is None}
        return tuple(state for state, _ in self._processes.values())

    def has(self, name: str) -> bool:
        """Whether one of this part has not ended."""
        return any(state.name == leaving(name) for state in self.states())

    def end(self, name: str) -> None:
        """End the one of this part, whose successor has ended: it holds what the next process needs to start."""
        if found := self._processes.pop(name, None):
            stop_together([found[0]], lambda _: None)
