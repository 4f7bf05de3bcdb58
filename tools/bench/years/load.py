"""The life of a fleet, sped up: rollouts to new revisions, some that come back, and deployments that come and go."""

import itertools
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from cli.client import send
from domain.commands.registry import parse_command
from domain.text.errors import RollwayError
from stack.home.folder import project_root

_POLICY: Mapping[str, Any] = {
    "strategy": "rolling_update",
    "spec": {"max_surge": 1, "max_unavailable": 1},
    "limits": {"timeout_seconds": 60, "failure_budget": 1},
}
_LASTING = 4
"""Deployments that roll out in turns, so that each rollout has the time of four."""
_BROKEN_EACH = 10
_SHORT_LIVED_EACH = 10


@dataclass(slots=True)
class FleetLife:
    """What happens, a rollout at a time. `refused`: how many commands were, which a busy machine may cause."""

    begun: int = 0
    refused: int = 0
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    _guest: str = ""

    def begin(self) -> None:
        """The deployments that stay, each with a first revision."""
        for name in _lasting():
            self._create(name)

    def rollouts(self, seconds: float, every: float) -> Iterator[None]:
        """Begin a rollout in each interval until the time is over; pauses after each, and while it waits."""
        names, ends_at, due = itertools.cycle(_lasting()), time.monotonic() + seconds, time.monotonic()
        while time.monotonic() < ends_at:
            if time.monotonic() >= due:
                due += every
                self._roll_out(next(names))
            yield
            time.sleep(max(0.0, min(0.2, due - time.monotonic())))

    def _roll_out(self, name: str) -> None:
        self.begun += 1
        broken = self.begun % _BROKEN_EACH == 0
        if self.begun % _SHORT_LIVED_EACH == 0:
            self._replace_guest()
        revision = self._add_revision(name, broken=broken)
        self._do("activate_revision", deployment=name, revision=revision, supersede=True)

    def _replace_guest(self) -> None:
        if self._guest:
            self._do("destroy", deployment=self._guest)
        self._guest = f"guest-{next(self._numbers)}"
        self._create(self._guest)

    def _create(self, name: str) -> None:
        self._do("create_deployment", deployment=name, desired_replicas=2, policy=_POLICY)
        self._do("activate_revision", deployment=name, revision=self._add_revision(name))

    def _add_revision(self, deployment: str, *, broken: bool = False) -> str:
        name = f"v{next(self._numbers)}"
        spec = {
            "command": [sys.executable, str(project_root() / "tools" / "bench" / "replica.py")],
            "env": {"ENDS": "at-once", "BROKEN": "start" if broken else ""},
            "health_check": {"interval_seconds": 0.5, "start_deadline_seconds": 20},
            "drain_seconds": 0.5,
        }
        self._do("add_revision", deployment=deployment, name=name, spec=spec)
        return name

    def _do(self, command: str, **values: object) -> None:
        payload = {"request_id": uuid4().hex, "actor": "years", **values}
        try:
            send(parse_command(f"rollway.{command}", payload))
        except RollwayError as error:
            self.refused += 1
            print(f"  {command} was refused: {error.message}", file=sys.stderr)


def _lasting() -> Sequence[str]:
    return [f"web-{number}" for number in range(1, _LASTING + 1)]
