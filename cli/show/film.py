"""A rollout as a film: a line for each cycle, from the steps that Postgres keeps, so that none is missed by polling."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from rich.console import Console
from rich.live import Live
from rich.text import Text

from cli.show.signs import waits_for_person
from db.views.ahead.cycles import Cycle, cycle_of, cycles
from db.views.deployment_view import DeploymentView
from db.views.timeline import Progress
from domain.model.states import RouteStatus

_WIDE = 20
_SLOW_START = timedelta(seconds=5)
"""A start that takes longer says what it waits for."""
_COUNTS_ON_SECONDS = 30
"""So seldom a wait of which only the numbers change is printed again; on a terminal never, the last line has them."""


@dataclass(slots=True)
class Film:
    """Prints a line for each cycle, each picture and each reason to wait; on a terminal, a last line is always fresh.

    `numbered`: for a rollout that only moves, with a number for each cycle and without reasons to wait.
    """

    console: Console
    prefix: str = ""
    numbered: bool = False
    started: float = field(default_factory=time.monotonic)
    shown: list[Cycle] = field(default_factory=list)
    rollout_id: UUID | None = None
    last_step: int = 0
    _live: Live | None = None
    _seen: Cycle | None = None
    _reason: str = ""
    _said_at: float = 0.0
    _failed: int = 0
    _told: set[str] = field(default_factory=set)

    @property
    def seconds(self) -> float:
        """Since the film began."""
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
        if now == self._seen and not _before_first_step(progress):
            self._print_if_new(now)
        self._seen = now
        if self._live is not None:
            words = progress.signs.missing_worker or deployment.overdue or f"{deployment.state}: {now.why}"
            self._live.update(
                Text(f"{self.prefix}{self.seconds:6.1f} s  {words}", "dim", no_wrap=True, overflow="ellipsis")
            )

    def end(self, deployment: DeploymentView) -> None:
        """Print the last picture, unless it was printed last."""
        self._print_if_new(_now(deployment))

    def _print_failure(self, progress: Progress) -> None:
        """A line for each start that fails; in a rollout for each cause, until a step says it and goes back."""
        failing, rollout = progress.failing, progress.rollout
        if failing is None or (rollout and (rollout.back_reason or self.numbered)):
            return
        line = f"a start of {failing.revision} failed: {failing.cause}"
        is_of_it = rollout is None or failing.revision == progress.deployment.deploying_revision
        if failing.in_a_row > self._failed and is_of_it and not (rollout and line in self._told):
            self._told.add(line)
            self.console.print(Text(f"{self.prefix}{self.seconds:6.1f} s  ! {line}", "yellow"))
        self._failed = failing.in_a_row

    def _print_slow_starts(self, deployment: DeploymentView) -> None:
        """A line for each thing that keeps replicas from coming up, such as an engine that does not run."""
        for route in deployment.routes:
            is_slow = deployment.now - route.created_at > _SLOW_START and route.status is RouteStatus.PROVISIONING
            line = f"a start of {route.revision} waits: {route.reason}"
            if is_slow and route.reason and line not in self._told and not self.numbered:
                self._told.add(line)
                self.console.print(Text(f"{self.prefix}{self.seconds:6.1f} s  ! {line}", "yellow"))

    def _print_if_new(self, now: Cycle) -> None:
        before = self._last
        if now.picture.strip("|") != (before.picture.strip("|") if before else "") or self._waits_for_more(now):
            self._print(now)

    def _waits_for_more(self, now: Cycle) -> bool:
        """Whether it waits for something else than was printed last; a step's own reason was printed with the step."""
        if self.numbered or self._last is None or now.why == self._reason:
            return False
        counts_on = _without_numbers(now.why) in map(_without_numbers, (self._reason, self._last.why))
        if counts_on and (self._live is not None or self.seconds < self._said_at + _COUNTS_ON_SECONDS):
            return False
        self._reason = now.why
        return not now.why.startswith(self._last.why)

    @property
    def _last(self) -> Cycle | None:
        return self.shown[-1] if self.shown else None

    def _print(self, cycle: Cycle) -> None:
        self.shown.append(cycle)
        self._said_at = self.seconds
        width = max(8, len(cycle.picture)) if len(cycle.picture) < _WIDE else 0
        number = f"cycle {len(self.shown) - 1}  " if self.numbered else ""
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
