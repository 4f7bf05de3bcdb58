"""--wait: look at a deployment until what was asked for has happened, and show each change on the way."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from rich.console import Console
from rich.live import Live
from rich.text import Text

from cli.exits import DegradedError, RolledBackError, UnreachableError, WaitTimedOutError
from cli.picture import picture
from cli.servers import Reader
from cli.status_view import overdue, state_of
from db.views import DeploymentView, deployment_by_id, rollouts_by_id
from domain.model import Lifecycle, RolloutOutcome

POLL_SECONDS = 0.1
_LOST_PATIENCE = 15.0

Goal = Callable[[DeploymentView], bool]
"""Whether what was waited for has happened. Raises a refusal when it never will."""


@dataclass(slots=True)
class Film:
    """A line for each picture that a deployment goes through, and on a terminal a last line that is always fresh."""

    console: Console
    prefix: str = ""
    started: float = field(default_factory=time.monotonic)
    _last: str | None = None
    _live: Live | None = None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    @contextmanager
    def rolling(self) -> Iterator[None]:
        """While it lasts, the fresh line is there."""
        if not self.console.is_terminal or self.console.quiet:
            yield
            return
        with Live(console=self.console, transient=True, refresh_per_second=10) as self._live:
            yield
        self._live = None

    def show(self, view: DeploymentView) -> None:
        """Print the picture when it is another one than before."""
        line = self._line(view)
        drawn = picture_of(view)
        if drawn != self._last:
            self._last = drawn
            self.console.print(line, no_wrap=True, overflow="ellipsis", crop=True, soft_wrap=False)
        if self._live is not None:
            late = overdue(view)
            self._live.update(Text(f"{self.seconds:6.1f} s  {late or state_of(view)}", "dim", no_wrap=True))

    def _line(self, view: DeploymentView) -> Text:
        width = max(8, view.desired_replicas + 4) if view.desired_replicas < 20 else 0  # noqa: PLR2004
        return Text(f"{self.prefix}{self.seconds:6.1f} s  {picture_of(view):<{width}}  {view.reason}")


def picture_of(view: DeploymentView) -> str:
    """The deployment's live routes, drawn."""
    routes = view.snapshot.routes
    return picture(routes, view.current_revision_id, view.deploying_revision_id)


def wait_until(goal: Goal, reader: Reader, deployment_id: UUID, timeout: float, console: Console) -> DeploymentView:
    """Returns how the deployment looks once the goal is reached. Raises WaitTimedOutError and what the goal raises."""
    film = Film(console)
    with film.rolling():
        while True:
            view = _look(reader, deployment_id)
            film.show(view)
            if goal(view):
                return view
            if film.seconds > timeout:
                message = f"waited {timeout:g} s; {view.name} is {state_of(view)}: {overdue(view) or view.reason}"
                raise WaitTimedOutError(message, deployment=view.name, state=state_of(view))
            time.sleep(POLL_SECONDS)


def rollout_ended(reader: Reader, rollout_id: UUID) -> Goal:
    """Completed; any other end raises RolledBackError."""

    def goal(_: DeploymentView) -> bool:
        rollout = reader.read(rollouts_by_id, [rollout_id])[rollout_id]
        if rollout.outcome in (None, RolloutOutcome.COMPLETED):
            return rollout.outcome is not None
        why = f": {rollout.back_reason}" if rollout.back_reason else ""
        said = rollout.outcome.replace("_", " ")
        message = f"the rollout to {rollout.to_revision} was {said}{why}"
        raise RolledBackError(message, rollout=rollout.id, outcome=rollout.outcome)

    return goal


def settled(view: DeploymentView) -> bool:
    """Ready, complete, and nothing of another revision left. Raises DegradedError when scaling gave up."""
    if view.degraded_reason:
        message = f"{view.name} is degraded: {view.degraded_reason}"
        raise DegradedError(message, deployment=view.name)
    if view.lifecycle is Lifecycle.DESTROYED:
        message = f"{view.name} was destroyed meanwhile"
        raise RolledBackError(message, deployment=view.name)
    serving = sum(route.snapshot.is_serving and route.revision_id == view.current_revision_id for route in view.routes)
    live = sum(route.snapshot.is_active for route in view.routes)
    return view.lifecycle is Lifecycle.READY and serving == live == view.desired_replicas


def destroyed(view: DeploymentView) -> bool:
    """Its last replica has gone."""
    return view.lifecycle is Lifecycle.DESTROYED


def _look(reader: Reader, deployment_id: UUID) -> DeploymentView:
    """Waits through a restart of Postgres."""
    lost_at = time.monotonic()
    while True:
        try:
            return reader.read(deployment_by_id, deployment_id)
        except UnreachableError:
            if time.monotonic() - lost_at > _LOST_PATIENCE:
                raise
            time.sleep(0.5)
