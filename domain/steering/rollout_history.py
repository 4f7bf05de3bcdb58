"""Finds the revisions that ran before, from the ended rollouts, and the one that an undo goes back to.

    v1 → v2 completed, v2 → v3 completed        undo goes to v2
    ..., v3 → v4 rolled back                    v4 is gone and v3 runs: nothing to undo, only `--to v2` goes further
    ..., just now                               whoever asked meant v4, so it is done already
    ..., undone: v3 → v2 completed              done already too: v3 is gone and v2 runs
    ..., v2 → v5 completed                      undo goes to v2; v3 and v4 were rolled back and are passed by

A revision that came up in a later rollout is no longer one that was rolled back. One with the content of the current
revision, as a restart leaves it behind, is passed by too, unless its replicas still run: nothing would change.

    ..., v2 → v5 completed, a file with other settings      undo puts the settings of before back; v5 runs on
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from domain.model.deployment import Deployment
from domain.model.policy import DeploymentPolicy
from domain.model.states import Lifecycle, RolloutOutcome
from domain.steering.gates import Frozen
from domain.text.errors import RollwayError, WrongStateError

_JUST = timedelta(minutes=1)
"""A person who types an undo within this time after a rollout has gone back may have seen it still under way."""


class NoPreviousRevisionError(RollwayError):
    """Nothing ran before the current revision, so there is nothing to go back to."""


class AlreadyUndoneError(RollwayError):
    """The last rollout is undone already, by itself or by a person; going further back takes a name."""


@dataclass(frozen=True, slots=True)
class KnownRevision:
    """A revision. `content`: equal for revisions that run the same."""

    id: UUID
    name: str
    content: str


@dataclass(frozen=True, slots=True)
class EndedRollout:
    """A rollout that was completed or rolled back. `size_before` and `size_with_revision`: replicas wanted."""

    from_revision: KnownRevision
    to_revision: KnownRevision
    outcome: RolloutOutcome
    ended_at: datetime
    is_undo: bool
    size_before: int
    size_with_revision: int | None = None


@dataclass(frozen=True, slots=True)
class WayBack:
    """The goal of an undo. `desired`: the size to take back, where one came with the revision that is left."""

    revision: KnownRevision
    desired: int | None = None


@dataclass(frozen=True, slots=True)
class SettingsRelease:
    """The last file that changed settings alone. `before` and `after`: its sections, by their names in a file.

    `revision_id` and `rollout_id`: what ran then, and the last rollout, as text; an undo after another one leaves the
    settings alone. `is_undone`: the settings of before have been put back.
    """

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    revision_id: str | None
    rollout_id: str | None
    is_undone: bool = False

    def against(self, sections: Mapping[str, Any]) -> "SettingsRelease | None":
        """The release with the sections that nobody has changed since; None if none is left."""
        same = {name for name, value in self.after.items() if sections[name] == value}
        if not same and not self.is_undone:
            return None
        return replace(self, before={name: value for name, value in self.before.items() if name in same})


class NamedRevision(NamedTuple):
    """A revision by its id and its name."""

    id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class Past:
    """The past of a deployment that rules need next to its snapshot.

    `other`: a revision that neither runs nor is on its way, if there is one. `last`: the revision of the last rollout,
    and how it ended, None while it runs; `last_is_undo`: whether it is an undo. `ended`: the rollouts that an undo
    looks back over, the eldest first. `settings`: the file after them. `frozen`: the freeze that is on.
    `current`: the name of the revision that runs. `newer`: revisions after that one, the newest first, without those
    that have only failed.
    """

    policy: DeploymentPolicy | None
    other: UUID | None = None
    last: tuple[UUID, RolloutOutcome | None] | None = None
    last_is_undo: bool = False
    ended: Sequence[EndedRollout] = ()
    settings: SettingsRelease | None = None
    frozen: Frozen | None = None
    current: str = ""
    newer: Sequence[NamedRevision] = ()

    @property
    def newest_good(self) -> str:
        """The newest revision after the current one that has neither only failed nor been rolled back; empty: none."""
        _, rolled_back = _ran(self.ended)
        return next((revision.name for revision in self.newer if revision.id not in rolled_back), "")


@dataclass(frozen=True, slots=True)
class UndoGoal:
    """The revision that an undo at rest goes to. `is_further`: the last rollout is undone already."""

    name: str
    is_further: bool = False


def undo_goal(deployment: Deployment, past: Past, now: datetime) -> UndoGoal:
    """The revision to go back to, further back where the last rollout is undone. Raises as `way_back` does."""
    before = _ran_before(deployment, past.ended)
    try:
        back = way_back(deployment, past.ended, now, past.settings).revision
    except AlreadyUndoneError:
        if not before.good:
            raise
        return UndoGoal(before.good[-1].name, is_further=True)
    if back.id != deployment.current_revision_id:
        return UndoGoal(back.name)
    if before.good:
        return UndoGoal(before.good[-1].name, is_further=True)
    raise _already_undone(deployment.name, past.ended[-1].to_revision.name, back.name, "")


def way_back(
    deployment: Deployment, ended: Sequence[EndedRollout], now: datetime, settings: SettingsRelease | None = None
) -> WayBack:
    """The revision that an undo at rest goes to. A rollout that has just gone back by itself leads to the running one.

    `ended`: the eldest first. `settings`: the file that is newer than they are.
    Raises AlreadyUndoneError when what came last is undone, NoPreviousRevisionError when nothing is left to go to, and
    WrongStateError when the deployment is being destroyed.
    """
    if deployment.status.lifecycle in (Lifecycle.DESTROYING, Lifecycle.DESTROYED):
        raise WrongStateError.of_leaving(deployment.name, deployment.status, "it can go back")
    stack, before, good = _ran_before(deployment, ended)
    if undone := _undone(ended, deployment.current_revision_id):
        if not ended[-1].is_undo and now - ended[-1].ended_at <= _JUST:
            return WayBack(stack[-1])
        raise _already_undone(deployment.name, undone.name, stack[-1].name, good[-1].name if good else "")
    if settings is not None and settings.is_undone:
        raise _settings_undone(deployment.name, good[-1].name if good else "")
    if not good:
        raise _nothing_before(deployment.name, before[-1].name if before else "", stack[-2].name if stack[1:] else "")
    return WayBack(good[-1], _size_before(deployment, ended[-1]))


def with_what_stays(refusal: RollwayError, settings: Sequence[str]) -> RollwayError:
    """Add the settings that were changed alone to the refusal: no undo takes them back."""
    if not settings:
        return refusal
    message = f"{refusal.message}. An undo goes back to a revision, and leaves what was set by itself: "
    message += f"{'; '.join(settings)}. Apply the file of before, or set that again"
    return type(refusal)(message, **refusal.detail)


def size_back(deployment: Deployment, revision: str, ended: Sequence[EndedRollout]) -> int | None:
    """The size for an undo to a named revision at rest, if the last rollout left that revision."""
    is_back = deployment.rollout is None and bool(ended) and ended[-1].from_revision.name == revision
    return _size_before(deployment, ended[-1]) if is_back else None


class _Before(NamedTuple):
    """The revisions that ran, up to the current one; those of them that run something else; those not rolled back."""

    stack: list[KnownRevision]
    others: list[KnownRevision]
    good: list[KnownRevision]


def _ran_before(deployment: Deployment, ended: Sequence[EndedRollout]) -> _Before:
    stack, rolled_back = _ran(ended)
    while stack and stack[-1].id != deployment.current_revision_id:  # it was left without a rollout
        stack.pop()
    others = [] if not stack else [revision for revision in stack if _is_other(revision, stack[-1], deployment)]
    return _Before(stack, others, [revision for revision in others if revision.id not in rolled_back])


def _ran(ended: Sequence[EndedRollout]) -> tuple[list[KnownRevision], set[UUID]]:
    """The revisions that ran, each on top of the one that an undo would lead to; and those rolled back last."""
    stack: list[KnownRevision] = []
    rolled_back: set[UUID] = set()
    for rollout in ended:
        _go_back_to(stack, rollout.from_revision)
        if rollout.outcome is not RolloutOutcome.COMPLETED:
            rolled_back.add(rollout.to_revision.id)
            continue
        rolled_back.discard(rollout.to_revision.id)
        if rollout.is_undo:
            rolled_back.add(rollout.from_revision.id)
            _go_back_to(stack, rollout.to_revision)
        else:
            stack.append(rollout.to_revision)
    return stack, rolled_back


def _go_back_to(stack: list[KnownRevision], revision: KnownRevision) -> None:
    """Remove everything above this revision; if it has not run, put it on top."""
    places = [place for place, ran in enumerate(stack) if ran.id == revision.id]
    if places:
        del stack[places[-1] + 1 :]
    else:
        stack.append(revision)


def _is_other(revision: KnownRevision, current: KnownRevision, deployment: Deployment) -> bool:
    if revision.id == current.id:
        return False
    return revision.content != current.content or any(
        route.revision_id == revision.id for route in deployment.active_routes
    )


def _undone(ended: Sequence[EndedRollout], current: UUID | None) -> KnownRevision | None:
    """The revision that the last rollout took away, if nothing has changed since."""
    last = ended[-1] if ended else None
    if last is None:
        return None
    if last.outcome is RolloutOutcome.COMPLETED:
        return last.from_revision if last.is_undo and last.to_revision.id == current else None
    return last.to_revision if not last.is_undo and last.from_revision.id == current else None


def _size_before(deployment: Deployment, last: EndedRollout) -> int | None:
    """The size that came with a revision goes with it, unless a person has scaled since."""
    is_its_own = last.to_revision.id == deployment.current_revision_id and last.outcome is RolloutOutcome.COMPLETED
    return last.size_before if is_its_own and last.size_with_revision == deployment.desired_replicas else None


def _already_undone(deployment: str, undone: str, current: str, further: str) -> AlreadyUndoneError:
    """`further`: the revision that ran before the current one, if any."""
    message = f"the rollout of {deployment} to {undone} is undone already, and {deployment} runs {current}"
    if further:
        message += f"; 'rollway undo {deployment} --to {further}' goes further back"
    return AlreadyUndoneError(message, deployment=deployment, undone=undone, current=current, further=further)


def _settings_undone(deployment: str, further: str) -> AlreadyUndoneError:
    """`further`: the revision that ran before the current one, if any."""
    message = f"the settings that the last file brought to {deployment} are undone already"
    if further:
        message += f"; 'rollway undo {deployment} --to {further}' goes further back"
    return AlreadyUndoneError(message, deployment=deployment, further=further)


def _nothing_before(deployment: str, rolled_back: str, same: str) -> NoPreviousRevisionError:
    """`rolled_back`: an earlier revision that was rolled back itself, if any; `same`: any earlier revision."""
    message = f"no rollout has led to the current revision of {deployment}; name the revision to go back to"
    if same:
        message = f"{same}, which {deployment} ran before, runs the same; name the revision to go back to"
    if rolled_back:
        message = (
            f"what {deployment} ran before was rolled back itself; "
            f"'rollway undo {deployment} --to {rolled_back}' goes there anyway"
        )
    detail = {"rolled_back": rolled_back} if rolled_back else {}
    return NoPreviousRevisionError(message, deployment=deployment, **detail)
