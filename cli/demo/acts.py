"""The acts of the demo, under load: create, roll out, come back. Each checks what it promised by asking replicas."""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
from rich.console import Console

from cli.demo.load import Load
from cli.demo.promise import Promise
from cli.options import new_request_id
from cli.servers import Reader, send
from cli.show.film import Film
from cli.show.waiting import Goal, destroyed, settled, wait_until
from db.views.cycles import Cycle
from db.views.deployments import DeploymentView, deployment_named
from db.views.progress import Progress
from db.views.rollouts import RolloutView
from db.views.routes import all_routes
from domain.commands.base import Command
from domain.commands.deployment import AddRevision, CreateDeployment, Destroy, SetPolicy
from domain.commands.rollout import ActivateRevision
from domain.errors import RollwayError
from domain.messages import parse_command
from domain.model import RolloutOutcome
from stack.home import project_root

_REPLICAS = 3
_BUDGET = {"max_surge": 1, "max_unavailable": 1}
_PATIENCE_SECONDS = 30.0
_PARTING_SECONDS = 10.0
_SHORT_TIMEOUT_SECONDS = 3


@dataclass(slots=True)
class Demo:
    """One run: a deployment on a stage, the load that it is under, and what was seen so far."""

    console: Console
    reader: Reader
    name: str
    load: Load
    promises: list[Promise] = field(default_factory=list)
    films: dict[str, list[Cycle]] = field(default_factory=dict)
    answers: dict[str, list[str]] = field(default_factory=dict)

    @property
    def deployment(self) -> DeploymentView:
        """The deployment as it is now."""
        return self.reader.read(deployment_named, self.name)

    def say(self, text: str = "") -> None:
        """One line for the audience."""
        self.console.print(text)

    def promise(self, promise: str, *, kept: bool, seen: str) -> None:
        """Note a promise and what became of it."""
        self.promises.append(Promise(promise, kept, seen))

    def do(self, command: type[Command], **settings: object) -> dict[str, Any]:
        """Carry out a command on the demo's deployment. Raises the refusals of `domain.errors`."""
        header = {"deployment": self.name, "request_id": new_request_id(), "actor": "demo"}
        return send(parse_command(command.task, {**header, **settings}))

    def roll_out(self, revision: str, env: dict[str, str]) -> RolloutView | None:
        """Add a revision, activate it, and film it until its rollout has ended."""
        spec = {
            "command": [sys.executable, str(project_root() / "examples" / "http_service.py")],
            "env": {"STARTUP_SECONDS": "0.3", **env},
            "health_check": {"path": "/health", "interval_seconds": 0.2},
            "drain_seconds": 0.2,
        }
        self.do(AddRevision, name=revision, spec=spec)
        rollout = self.do(ActivateRevision, revision=revision)["rollout_id"]
        progress = self.film(revision, _ended if rollout else settled, numbered=rollout is not None)
        return progress.rollout

    def end_load(self) -> None:
        """Wait for the last answers. The promises: none failed, and no replica of v3 was asked."""
        self.load.stop()
        tally = self.load.tally
        answered = ", ".join(f"{revision} {count}" for revision, count in sorted(tally.revisions.items()))
        self.promise("the broken v3 is never asked", kept="v3" not in tally.revisions, seen=f"answers: {answered}")
        self.promise("under load, no request is lost", kept=tally.failed == 0, seen=str(tally))

    def film(self, title: str, goal: Goal, *, numbered: bool = False) -> Progress:
        """Show what happens until the goal is reached."""
        film = Film(self.console, prefix="  ", numbered=numbered)
        self.films[title] = film.shown
        return wait_until(goal, self.reader, self.deployment.id, _PATIENCE_SECONDS, film)

    def settle(self, goal: Goal, seconds: float = _PATIENCE_SECONDS) -> None:
        """Wait without a picture."""
        wait_until(goal, self.reader, self.deployment.id, seconds, Film(Console(quiet=True)))

    def everyone_runs(self, revision: str, when: str) -> None:
        """Ask each active replica over HTTP. The promise: 3 of this revision and no other."""
        addresses = [route.address for route in self.deployment.routes if route.is_active]
        answers = self.answers[when] = sorted(map(_revision_at, addresses))
        self.say(f"  asked over HTTP, the replicas answer: {', '.join(answers)}")
        kept = answers == [revision] * _REPLICAS
        self.promise(f"{when}, all {_REPLICAS} replicas run {revision}", kept=kept, seen=", ".join(answers))


def _create(run: Demo) -> None:
    limits = {"timeout_seconds": 60}
    run.do(CreateDeployment, desired_replicas=_REPLICAS, policy=_policy(limits))
    run.roll_out("v1", {"VERSION": "1"})
    run.load.start()
    run.say("  from now on 100 requests a second through Envoy, some on new connections, some with slow answers")


def _roll_out(run: Demo) -> None:
    rollout = run.roll_out("v2", {"VERSION": "2"})
    if rollout is None or rollout.outcome != RolloutOutcome.COMPLETED:
        run.promise("the rollout to v2 is completed", kept=False, seen=_ending(rollout))
    run.everyone_runs("v2", "after the rollout")
    run.say(f"  under load so far: {run.load.tally}")


def _come_back(run: Demo) -> None:
    run.do(SetPolicy, policy=_policy({"timeout_seconds": _SHORT_TIMEOUT_SECONDS}))
    rollout = run.roll_out("v3", {"BROKEN": "health"})
    turned_back = rollout is not None and rollout.outcome == RolloutOutcome.ROLLED_BACK
    run.promise("the broken v3 goes back by itself", kept=turned_back, seen=_ending(rollout))
    run.settle(settled)
    run.everyone_runs("v2", "after the way back")
    run.say(f"  under load so far: {run.load.tally}")
    left = _wait_for_end_of(run, "v3")
    run.promise("no replica of v3 is left", kept=not left, seen=f"{left} left" if left else "all stopped")
    _check_budget(run)
    run.end_load()


def leave(run: Demo) -> None:
    """Destroy the deployment, so that nothing of it stays in a database that was here before."""
    run.load.stop(patience=0)
    with suppress(RollwayError):
        run.do(Destroy)
        run.settle(destroyed, _PARTING_SECONDS)


ACTS: Sequence[tuple[str, Callable[[Demo], None]]] = (
    (f"Create: {_REPLICAS} replicas of examples/http_service.py, revision v1", _create),
    ("Roll out v2 (max_surge 1, max_unavailable 1); old|new, ■ healthy, ◇ starting", _roll_out),
    (f"Roll out v3, which never becomes healthy, with a timeout of {_SHORT_TIMEOUT_SECONDS} s", _come_back),
)


def _policy(limits: dict[str, Any]) -> dict[str, Any]:
    return {"strategy": "rolling_update", "spec": _BUDGET, "limits": limits}


def _ended(progress: Progress) -> bool:
    return progress.rollout is not None and progress.rollout.outcome is not None


def _ending(rollout: RolloutView | None) -> str:
    if rollout is None or rollout.outcome is None:
        return "it has not ended"
    why = (rollout.back_reason or "").partition("; last:")[0]
    return f"{rollout.outcome.replace('_', ' ')}{': ' if why else ''}{why}"


def _revision_at(address: str | None) -> str:
    try:
        answer = httpx.get(f"http://{address}/", timeout=5, trust_env=False).raise_for_status()
        return str(answer.json()["revision"])
    except (httpx.HTTPError, ValueError, KeyError) as error:
        return f"no answer ({type(error).__name__})"


def _wait_for_end_of(run: Demo, revision: str) -> int:
    """How many replicas of the revision still run after a while; 0 as soon as none does."""
    deployment_id = run.deployment.id
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        routes = run.reader.read(all_routes, deployment_id, 100)
        left = sum(route.revision == revision and route.stopped_at is None for route in routes)
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)


def _check_budget(run: Demo) -> None:
    """In every picture of both rollouts: at most 3 + 1 active, at least 3 - 1 serving."""
    seen = [cycle for title in ("v2", "v3") for cycle in run.films[title]]
    most, least = max(cycle.active for cycle in seen), min(cycle.serving for cycle in seen)
    kept = most <= _REPLICAS + _BUDGET["max_surge"] and least >= _REPLICAS - _BUDGET["max_unavailable"]
    run.promise(
        "never more than 4 live, never fewer than 2 serving", kept=kept, seen=f"at most {most} and at least {least}"
    )
