"""A rollout as a film: a line for each cycle, from the steps that Postgres keeps, so that none is missed by polling."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from uuid import UUID

from pydantic import TypeAdapter
from rich.console import Console
from rich.live import Live
from rich.text import Text

from cli.show.signs import missing_worker
from cli.show.status import overdue, state_of
from db.views.deployments import DeploymentView
from db.views.progress import Progress
from db.views.timeline import StepView
from domain.after import routes_after
from domain.changes import RouteChanges
from domain.model import Deployment, RouteStatus, Verdict
from domain.picture import picture
from domain.recording import inputs_from_json

_CHANGES = TypeAdapter(RouteChanges)
_WIDE = 20


@dataclass(frozen=True, slots=True)
class Cycle:
    """One cycle of a rollout: the picture that it saw, what it did in a few words, and why.

    `active` counts the replicas that the budget counts, `serving` the healthy ones in traffic.
    """

    picture: str
    did: str
    why: str
    active: int
    serving: int


def cycles(step: StepView) -> list[Cycle]:
    """A step's own cycle; after one that created replicas also the wait for them, drawn as it left them."""
    before, at = inputs_from_json(step.inputs)
    changes = _CHANGES.validate_python(step.decision["changes"])
    own = _cycle(before, _did(changes, step), step.decision["reason"])
    if not changes.created:
        return [own]
    after = replace(before, routes=routes_after(before.routes, changes, at))
    starting = sum(route.status is RouteStatus.PROVISIONING for route in after.active_routes)
    return [own, _cycle(after, "wait", f"waiting: {starting} new starting")]


@dataclass(slots=True)
class Film:
    """Prints a line for each cycle and each picture; on a terminal, a last line below them is always fresh."""

    console: Console
    prefix: str = ""
    numbered: bool = False
    started: float = field(default_factory=time.monotonic)
    shown: list[Cycle] = field(default_factory=list)
    rollout_id: UUID | None = None
    last_step: int = 0
    _live: Live | None = None
    _seen: Cycle | None = None

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
            self.last_step = step.step_no
            for cycle in cycles(step):
                if cycle != self._last:
                    self._print(cycle)
        now = _cycle(deployment, "", deployment.reason)
        if now == self._seen and not _before_first_step(progress):
            self._print_if_new(now)
        self._seen = now
        if self._live is not None:
            words = (
                missing_worker(progress.signs) or overdue(deployment) or f"{state_of(deployment)}: {deployment.reason}"
            )
            self._live.update(
                Text(f"{self.prefix}{self.seconds:6.1f} s  {words}", "dim", no_wrap=True, overflow="ellipsis")
            )

    def end(self, deployment: DeploymentView) -> None:
        """Print the last picture, unless it was printed last."""
        self._print_if_new(_cycle(deployment, "", deployment.reason))

    def _print_if_new(self, now: Cycle) -> None:
        if now.picture.strip("|") != (self._last.picture.strip("|") if self._last else ""):
            self._print(now)

    @property
    def _last(self) -> Cycle | None:
        return self.shown[-1] if self.shown else None

    def _print(self, cycle: Cycle) -> None:
        self.shown.append(cycle)
        width = max(8, len(cycle.picture)) if len(cycle.picture) < _WIDE else 0
        number = f"cycle {len(self.shown) - 1}  " if self.numbered else ""
        words = (cycle.did or cycle.why) if self.numbered else cycle.why
        line = Text(f"{self.prefix}{self.seconds:6.1f} s  {number}{cycle.picture:<{width}}  {words}")
        self.console.print(line, no_wrap=True, overflow="ellipsis", crop=True, soft_wrap=False)


def _before_first_step(progress: Progress) -> bool:
    """Whether the first step will show the picture of this moment."""
    return progress.rollout is not None and progress.rollout.steps == 0 and progress.rollout.outcome is None


def _cycle(deployment: Deployment | DeploymentView, did: str, why: str) -> Cycle:
    routes = deployment.routes
    drawn = picture(routes, deployment.current_revision_id, deployment.deploying_revision_id)
    return Cycle(drawn, did, why, sum(route.is_active for route in routes), sum(route.is_serving for route in routes))


def _did(changes: RouteChanges, step: StepView) -> str:
    parts = []
    if changes.created:
        parts.append(f"create {changes.created}")
    if changes.promote_route_ids:
        parts.append(f"promote {len(changes.promote_route_ids)}")
    if changes.drain_route_ids:
        parts.append(f"drain {len(changes.drain_route_ids)}")
    match step.decision["revision"]:
        case "swap":
            parts.append("completed, swap, ready")
        case "clear":
            parts.append("back where it was, ready")
    if step.verdict in (Verdict.EXPIRED, Verdict.GIVE_UP, Verdict.ERROR):
        parts.append(f"{step.verdict.replace('_', ' ')}: {step.decision['reason'].partition('; last:')[0]}")
    return ", ".join(parts)
