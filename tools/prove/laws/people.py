"""What people do: every command of a person, and the help of one who is waited for."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from domain.cycle.rollout import size_again
from domain.model.deployment import Deployment
from domain.model.states import RolloutOutcome
from domain.steering import verbs as steering
from domain.steering.command_effect import Effect
from domain.text.errors import RollwayError
from tests.support.people.people import activate_revision, asking, request
from tests.support.pictures.pictures import V1, V2, V3
from tools.prove.laws.every_state import broken_by_command
from tools.prove.laws.spelled import unlike
from tools.prove.laws.spelled_commands import after_command
from tools.prove.state import Move, RolledBack, State, still_held

Command = Callable[[State], Effect]
SIZES = (0, 1, 2, 3)


def _activate(number: int, *, supersede: bool) -> Command:
    revision = (V1, V2, V3)[number]
    return lambda state: activate_revision(state.deployment, revision, state.policy, state.now, supersede=supersede)


def _scale(size: int) -> Command:
    return lambda state: steering.scale(state.deployment, size)


def _undo(state: State) -> Effect:
    at_rest = state.deployment.rollout is None
    back = request(state.deployment, state.previous, state.policy) if state.previous and at_rest else None
    return steering.undo(state.deployment, back, asking(state.deployment, state.now))


def _undo_to(number: int) -> Command:
    revision = (V1, V2, V3)[number]
    return lambda state: steering.undo(
        state.deployment, request(state.deployment, revision, state.policy), asking(state.deployment, state.now)
    )


def _retry(state: State) -> Effect:
    """The rollout that runs, or the last one that ended."""
    deployment, rollout = state.deployment, state.deployment.rollout
    last, outcome = state.rolled_back, RolloutOutcome.ROLLED_BACK if rollout is None and state.rolled_back else None
    if rollout is not None:
        with_revision, before = rollout.desired_with_revision, rollout.desired_at_start
        last = RolledBack(rollout.to_revision_id, with_revision, before, rollout.is_undo)
    if last is None:
        return steering.retry(deployment, None, None, asking(deployment, state.now))
    again = request(deployment, last.revision, state.policy, desired=size_again(deployment, last.size, last.before))
    return steering.retry(deployment, replace(again, is_undo=last.is_undo), outcome, asking(deployment, state.now))


COMMANDS: dict[str, Command] = {
    "pause": lambda state: steering.pause(state.deployment, asking(state.deployment, state.now)),
    "resume": lambda state: steering.resume(state.deployment, asking(state.deployment, state.now)),
    "promote": lambda state: steering.promote(state.deployment),
    "promote in full": lambda state: steering.promote(state.deployment, full=True),
    "abort": lambda state: steering.abort(state.deployment, asking(state.deployment, state.now)),
    "abort now": lambda state: steering.abort(state.deployment, asking(state.deployment, state.now), now=True),
    "undo": _undo,
    "retry": _retry,
    "destroy": lambda state: steering.destroy(state.deployment, asking(state.deployment, state.now)),
    **{f"activate v{number + 1}": _activate(number, supersede=False) for number in range(3)},
    **{f"activate v{number + 1} with supersede": _activate(number, supersede=True) for number in range(3)},
    **{f"undo to v{number + 1}": _undo_to(number) for number in range(3)},
    **{f"scale to {size}": _scale(size) for size in SIZES},
}


def people(state: State) -> Iterator[Move]:
    """Each command that is not refused and changes something, and wants no more replicas than there are devices."""
    if not state.left.commands:
        return
    for name, command in COMMANDS.items():
        move = asked(state, name, command)
        if move is not None and not _wants_too_many(move.state):
            yield move._replace(state=replace(move.state, left=state.left.after_command()))


def _wants_too_many(state: State) -> bool:
    rollout, n = state.deployment.rollout, state.deployment.desired_replicas
    return state.devices is not None and max(n, rollout.desired_at_start if rollout else n) > state.devices


def asked(state: State, name: str, command: Command) -> Move | None:
    """None for a command that is refused, or that finds everything as it should be."""
    wanted = after_command(name, state)
    try:
        steered = command(state)
    except RollwayError:
        return _refused(state, name, wanted)
    if steered.already or replace(steered.deployment, version=state.deployment.version) == state.deployment:
        return _refused(state, name, wanted)
    after = replace(state, deployment=steered.deployment, due_at=state.now, held=still_held(state, steered.deployment))
    broken = unlike(f"'{name}'", wanted, steered.deployment) or broken_by_command(state, name, steered)
    return Move(name, after, said=steered.sentence, broken=broken)


def _refused(state: State, name: str, wanted: Deployment | None) -> Move | None:
    return Move(name, state, broken=unlike(f"'{name}'", wanted, None)) if wanted else None


def helper(state: State) -> Move | None:
    """Whoever is waited for resumes or promotes."""
    deployment = state.deployment
    name = "resume" if deployment.paused_at is not None else "promote"
    rollout = deployment.rollout
    if rollout is None or rollout.clock_stopped_at is None or state.is_due:
        return None
    move = asked(state, name, COMMANDS[name])
    return move._replace(kind=True) if move else None
