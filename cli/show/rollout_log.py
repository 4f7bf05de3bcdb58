"""The log of a rollout: a line for each cycle, from the steps in Postgres, so that polling misses none."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from rich.console import Console
from rich.live import Live
from rich.text import Text

from api.people.paths import DEPLOYMENT
from cli.client import Reader
from cli.show.status import waits_for_person
from cli.terminal.exits import DegradedError, RolledBackError, UnreachableError, WaitsForPersonError, WaitTimedOutError
from cli.terminal.output import printer
from db.views.deployment_view import DeploymentView
from db.views.planning_views import Cycle, cycle_of, cycles
from db.views.timeline import Progress
from domain.handlers.check_replica import is_settled
from domain.model.deployment import MOST_STARTS
from domain.model.states import Lifecycle, RolloutOutcome, RouteStatus

_WIDE = 20
_SLOW_START = timedelta(seconds=5)
"""A start that takes longer prints what it waits for."""
_COUNTS_ON_SECONDS = 30
"""The interval at which a wait is printed again when only its numbers change; not on a terminal, whose last line has
them."""


@dataclass(slots=True)
class RolloutLog:
    """Prints a line for each cycle, picture and reason to wait; on a terminal, a last line is always fresh.

    `numbered`: for a rollout that only moves, with a number for each cycle and without reasons to wait.
    """

    console: Console
    prefix: str = ""
    numbered: bool = False
    started: float = field(default_factory=time.monotonic)
    cycles: list[Cycle] = field(default_factory=list)
    rollout_id: UUID | None = None
    last_step: int = 0
    _live: Live | None = None
    _last_cycle: Cycle | None = None
    _reason: str = ""
    _said_at: float = 0.0
    _failed: int = 0
    _messages: set[str] = field(default_factory=set)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    @contextmanager
    def rolling(self) -> Iterator[None]:
        """On a terminal, show the line that is always fresh; it goes away at the end."""
        if not self.console.is_terminal or self.console.quiet:
            yield
            return
        with Live(console=self.console, transient=True, refresh_per_second=10) as self._live:
            yield
        self._live = None

    def show(self, progress: Progress) -> None:
        """Print the cycles since the last read; then the picture of this moment, once two reads have seen it.

        A rollout that begins is followed from now on: `rollout_id` and `last_step` say what to read next.
        """
        deployment = progress.deployment
        if deployment.rollout_id not in (None, self.rollout_id):
            self.rollout_id, self.last_step = deployment.rollout_id, 0
            return
        for step in progress.steps:
            self.last_step, self._reason = step.step_no, step.decision["reason"]
            for cycle in cycles(step):
                if cycle != self._last:
                    self._print(cycle)
        self._print_failure(progress)
        self._print_slow_starts(deployment)
        now = _now(deployment)
        if now == self._last_cycle and not _before_first_step(progress):
            self._print_if_new(now)
        self._last_cycle = now
        if self._live is not None:
            words = progress.signs.missing_worker or deployment.overdue or f"{deployment.state}: {now.why}"
            self._live.update(
                Text(f"{self.prefix}{self.seconds:6.1f} s  {words}", "dim", no_wrap=True, overflow="ellipsis")
            )

    def end(self, deployment: DeploymentView) -> None:
        """Print the last picture, unless it was printed last."""
        self._print_if_new(_now(deployment))

    def _print_failure(self, progress: Progress) -> None:
        """A line for each failed start; in a rollout for each cause, until a step reports it and goes back."""
        failing, rollout = progress.failing, progress.rollout
        if failing is None or (rollout and (rollout.back_reason or self.numbered)):
            return
        line = f"a start of {failing.revision} failed: {failing.cause}"
        is_of_it = rollout is None or failing.revision == progress.deployment.deploying_revision
        if failing.in_a_row > self._failed and is_of_it and not (rollout and line in self._messages):
            self._messages.add(line)
            self.console.print(Text(f"{self.prefix}{self.seconds:6.1f} s  ! {line}", "yellow"))
        self._failed = failing.in_a_row

    def _print_slow_starts(self, deployment: DeploymentView) -> None:
        """A line for each thing that keeps replicas from coming up, such as an engine that does not run."""
        for route in deployment.routes:
            is_slow = deployment.now - route.created_at > _SLOW_START and route.status is RouteStatus.PROVISIONING
            line = f"a start of {route.revision} waits: {route.reason}"
            if is_slow and route.reason and line not in self._messages and not self.numbered:
                self._messages.add(line)
                self.console.print(Text(f"{self.prefix}{self.seconds:6.1f} s  ! {line}", "yellow"))

    def _print_if_new(self, now: Cycle) -> None:
        before = self._last
        if now.picture.strip("|") != (before.picture.strip("|") if before else "") or self._waits_for_more(now):
            self._print(now)

    def _waits_for_more(self, now: Cycle) -> bool:
        """Whether it waits for something new; a step's own reason was printed with the step."""
        if self.numbered or self._last is None or now.why == self._reason:
            return False
        counts_on = _without_numbers(now.why) in map(_without_numbers, (self._reason, self._last.why))
        if counts_on and (self._live is not None or self.seconds < self._said_at + _COUNTS_ON_SECONDS):
            return False
        self._reason = now.why
        return not now.why.startswith(self._last.why)

    @property
    def _last(self) -> Cycle | None:
        return self.cycles[-1] if self.cycles else None

    def _print(self, cycle: Cycle) -> None:
        self.cycles.append(cycle)
        self._said_at = self.seconds
        width = max(8, len(cycle.picture)) if len(cycle.picture) < _WIDE else 0
        number = f"cycle {len(self.cycles) - 1}  " if self.numbered else ""
        words = (cycle.did or cycle.why) if self.numbered else cycle.why
        line = Text(f"{self.prefix}{self.seconds:6.1f} s  {number}{cycle.picture:<{width}}  {words}")
        self.console.print(line, no_wrap=True, overflow="ellipsis", crop=True, soft_wrap=False)


def _without_numbers(words: str) -> str:
    return re.sub(r"[\d.,]+", "", words)


def _before_first_step(progress: Progress) -> bool:
    """Whether the first step will show the picture of this moment."""
    return progress.rollout is not None and progress.rollout.steps == 0 and progress.rollout.outcome is None


def _now(view: DeploymentView) -> Cycle:
    return cycle_of(view, "", waits_for_person(view) or view.reason)


POLL_SECONDS = 0.1
_LOST_PATIENCE = 15.0

Goal = Callable[[Progress], bool]
"""Whether the goal of the wait is reached. Raises a refusal when it never will be."""


def wait_until(goal: Goal, reader: Reader, deployment: str, timeout: float, film: RolloutLog) -> Progress:
    """The progress that reached the goal; each change on the way is printed.

    Raises WaitTimedOutError or WaitsForPersonError after `timeout` seconds, and what the goal raises.
    """
    try:
        with film.rolling():
            while True:
                progress = _progress(reader, deployment, film)
                film.show(progress)
                if goal(progress):
                    film.end(progress.deployment)
                    return progress
                if film.seconds > timeout:
                    film.end(progress.deployment)
                    raise _timed_out(progress, timeout)
                time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        shows = "'rollway status --watch' shows it"
        printer(stderr=True).print(f"No longer waiting; the command continues, and {shows}.", soft_wrap=True)
        raise


def _timed_out(progress: Progress, timeout: float) -> WaitTimedOutError | WaitsForPersonError:
    view = progress.deployment
    if reason := waits_for_person(view):
        return WaitsForPersonError(f"{view.name} {reason} (waited {timeout:g} s)", deployment=view.name)
    why = progress.signs.missing_worker or view.said
    message = f"waited {timeout:g} s; {view.name} is {view.state}: {why}"
    return WaitTimedOutError(message, deployment=view.name, state=view.state)


def rollout_completed(progress: Progress) -> bool:
    """The rollout of the log is completed; without a rollout, `settled`.

    Raises RolledBackError when the rollout ended in any other way.
    """
    rollout = progress.rollout
    if rollout is None:
        return settled(progress)
    if rollout.outcome in (None, RolloutOutcome.COMPLETED):
        return rollout.outcome is not None
    why = f": {rollout.back_reason}" if rollout.back_reason else ""
    message = f"the rollout to {rollout.to_revision} was {rollout.outcome.replace('_', ' ')}{why}"
    raise RolledBackError(message, rollout=rollout.id, outcome=rollout.outcome, reason=rollout.back_reason or "")


def settled(progress: Progress) -> bool:
    """Ready, complete, and nothing of another revision left; or without a revision, since nothing runs then.

    Raises DegradedError when scaling gave up or nothing has ever come up, and RolledBackError when the deployment was
    destroyed meanwhile.
    """
    view = progress.deployment
    if view.current_revision_id is None:
        return True
    failing, serving = progress.failing, any(route.is_serving for route in view.routes)
    if view.degraded_reason:
        cause = f"; a replica failed: {failing.cause}" if failing else ""
        raise DegradedError(f"{view.name} is degraded: {view.degraded_reason}{cause}", deployment=view.name)
    if failing and not failing.has_come_up and failing.in_a_row >= MOST_STARTS and not serving:
        message = f"{failing.revision} of {view.name} has never been healthy: {failing.in_a_row} starts failed in a row"
        more = f"the last one: {failing.cause}; mend what it runs, and apply it again"
        raise DegradedError(f"{message}, {more}", deployment=view.name)
    if view.lifecycle is Lifecycle.DESTROYED:
        message = f"{view.name} was destroyed meanwhile"
        raise RolledBackError(message, deployment=view.name)
    return is_settled(view.snapshot, view.now)


def gone_back(progress: Progress) -> bool:
    """The rollout that an undo began is completed, or the turned one is back where it came from.

    Raises what `rollout_completed` and `settled` raise.
    """
    rollout = progress.rollout
    return rollout_completed(progress) if rollout is not None and rollout.is_undo else settled(progress)


def destroyed(progress: Progress) -> bool:
    """The last replica of the deployment has gone."""
    return progress.deployment.lifecycle is Lifecycle.DESTROYED


def followed(reader: Reader, deployment: str, film: RolloutLog) -> Progress:
    after = film.last_step if film.rollout_id else None
    return reader.view(Progress, f"{DEPLOYMENT}/progress", deployment, rollout=film.rollout_id, after=after)


def _progress(reader: Reader, deployment: str, film: RolloutLog) -> Progress:
    """Read the progress, waiting through a restart of Postgres."""
    lost_at = time.monotonic()
    while True:
        try:
            return followed(reader, deployment, film)
        except UnreachableError:
            if time.monotonic() - lost_at > _LOST_PATIENCE:
                raise
            time.sleep(0.5)
