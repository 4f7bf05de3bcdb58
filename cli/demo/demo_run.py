"""A run of the demo: its deployment, its commands, and the check of its promises."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console

from cli.client import Reader, deployment_named, send
from cli.demo.load.generator import Load, LoadSettings
from cli.demo.load.mix import Kind
from cli.options import new_request_id
from cli.show.rollout_log import Goal, RolloutLog, settled, wait_until
from db.views.deployment_view import DeploymentView
from db.views.planning_views import Cycle
from db.views.rollout_views import RolloutView
from db.views.timeline import Progress
from domain.commands.base import Command
from domain.commands.deployment_commands import AddRevision
from domain.commands.registry import parse_command
from domain.commands.rollout_commands import ActivateRevision


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise: what should happen, whether it did, and what happened."""

    promise: str
    kept: bool
    seen: str


REPLICAS = 3
PATIENCE_SECONDS = 120.0
_MIX = {Kind.GET: 0.88, Kind.GET_CLOSE: 0.1, Kind.SLOW_GET: 0.02}


def demo_load(envoy: str, host: str) -> Load:
    """100 requests a second to one deployment: every tenth on a new connection, a few slow. `envoy`: its URL.

    A machine that is too busy for that gets fewer requests, and answers late: that is no failure of the rollout.
    """
    address = envoy.removeprefix("http://")
    return Load(LoadSettings(address=address, host=host, rate=100, timeout=60, longest=1.0, mix=_MIX))


@dataclass(slots=True)
class Demo:
    """A run: a deployment on a stage, its load, and the results."""

    console: Console
    reader: Reader
    name: str
    load: Load
    promises: list[Promise] = field(default_factory=list)
    films: dict[str, list[Cycle]] = field(default_factory=dict)
    answers: dict[str, list[str]] = field(default_factory=dict)
    verdict: str = ""
    """The verdict of the canary's judge, with its numbers."""

    @property
    def deployment(self) -> DeploymentView:
        return deployment_named(self.reader, self.name)

    def say(self, text: str = "") -> None:
        self.console.print(text)

    def promise(self, promise: str, *, kept: bool, seen: str) -> None:
        self.promises.append(Promise(promise, kept, seen))

    def do(self, command: type[Command], **settings: object) -> dict[str, Any]:
        """Carry out a command on the demo's deployment. Raises the refusals of `domain`."""
        header = {"deployment": self.name, "request_id": new_request_id(), "actor": "demo"}
        return send(parse_command(command.task, {**header, **settings}))

    def roll_out(self, revision: str, env: dict[str, str]) -> RolloutView | None:
        """Add a revision, activate it, and film it until its rollout has ended."""
        spec = {
            "command": [sys.executable, str(Path(__file__).with_name("http_service.py"))],
            "env": {"STARTUP_SECONDS": "0.3", **env},
            "health_check": {"path": "/health", "interval_seconds": 0.2},
            "drain_seconds": 0.2,
        }
        self.do(AddRevision, name=revision, spec=spec)
        rollout = self.do(ActivateRevision, revision=revision)["rollout_id"]
        progress = self.film(revision, _ended if rollout else settled, numbered=rollout is not None)
        return progress.rollout

    def film(self, title: str, goal: Goal, *, numbered: bool = False) -> Progress:
        """Show what happens until the goal is reached."""
        film = RolloutLog(self.console, prefix="  ", numbered=numbered)
        self.films[title] = film.cycles
        return wait_until(goal, self.reader, self.name, PATIENCE_SECONDS, film)

    def settle(self, goal: Goal, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait without a picture."""
        wait_until(goal, self.reader, self.name, seconds, RolloutLog(Console(quiet=True)))

    def everyone_runs(self, revision: str, when: str) -> None:
        """Check, by asking each active replica over HTTP, the promise of 3 replicas of this revision and no other."""
        addresses = [route.address for route in self.deployment.routes if route.is_active]
        answers = self.answers[when] = sorted(map(_revision_at, addresses))
        self.say(f"  asked over HTTP, the replicas answer: {', '.join(answers)}")
        is_everywhere = answers == [revision] * REPLICAS
        self.promise(f"{when}, all {REPLICAS} replicas run {revision}", kept=is_everywhere, seen=", ".join(answers))


def _ended(progress: Progress) -> bool:
    return progress.rollout is not None and progress.rollout.outcome is not None


def _revision_at(address: str | None) -> str:
    try:
        answer = httpx.get(f"http://{address}/", timeout=30, trust_env=False).raise_for_status()
        return str(answer.json()["revision"])
    except (httpx.HTTPError, ValueError, KeyError) as error:
        return f"no answer ({type(error).__name__})"
