"""What a search has found, to be read: a path through the states as a film, and two states that were taken for one."""

from collections.abc import Iterator

from domain.model.picture import picture
from domain.model.states import RouteStatus
from tools.prove.key import key_of
from tools.prove.search import Path, moves
from tools.prove.state import State


def film(start: State, path: Path, law: str) -> str:
    """The law that is broken, and how it came to that."""
    return "\n".join((f"broken: {law}", *_lines(start, path)))


def _lines(state: State, path: Path) -> Iterator[str]:
    began = state.now
    yield _line(0, "start", state, "")
    for number in path:
        move = moves(state)[number]
        state = move.state
        yield _line((state.now - began).total_seconds(), move.event, state, move.said)


def beside(pair: tuple[State, State]) -> str:
    """Two states with one key: both in full, and what follows from one of them alone."""
    first, second = ({key_of(move.state): move for move in moves(state)} for state in pair)
    alone = [
        _line(0, f"only from the {which}", move.state, f"{move.event}: {move.said}")
        for which, mine, others in (("first", first, second), ("second", second, first))
        for key, move in mine.items()
        if key not in others
    ]
    return "\n".join((*(f"{_line(0, 'one key', state, '')}\n{state}" for state in pair), *alone))


def _line(seconds: float, event: str, state: State, said: str) -> str:
    deployment = state.deployment
    drawn = picture(deployment.routes, deployment.current_revision_id, deployment.deploying_revision_id)
    stopping = "~" * sum(route.status is RouteStatus.TERMINATING for route in deployment.routes)
    due = "" if state.due_at is None else f"due in {(state.due_at - state.now).total_seconds():.0f} s"
    return f"{seconds:6.0f} s  {event:24} {drawn + stopping:12} {deployment.status!s:24} {due:14} {said}".rstrip()
