"""The deployment under load: told what to do as a person would, and watched until it has done it."""

import itertools
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import psycopg
from psycopg.rows import dict_row

from cli.client import send
from cli.terminal.exits import UnreachableError
from domain.commands.registry import parse_command
from domain.text.errors import RollwayError
from stack.home.folder import project_root
from tests.support.stack.waiting import NotInTimeError, eventually
from tools.bench.zero_loss.picture import Picture, RouteSeen

ROLLING: Mapping[str, Any] = {
    "strategy": "rolling_update",
    "spec": {"max_surge": 1, "max_unavailable": 1},
    "limits": {"timeout_seconds": 120},
}
BLUE_GREEN: Mapping[str, Any] = {"strategy": "blue_green", "spec": {"auto_promote": False}, "limits": {}}
_PATIENCE = 60.0
_POLL = 0.1


class ScenarioError(Exception):
    """Something did not happen in time, or was refused; the message is one sentence."""


@dataclass(slots=True)
class Service:
    """A deployment of `tools/bench/replica.py`, whose replicas end at once when they are asked to.

    `longest_request`: the seconds they have before that. `current`: the revision that ought to run.
    """

    name: str
    replicas: int
    longest_request: float
    current: str = ""
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    _connection: psycopg.Connection[Any] | None = None

    def create(self) -> None:
        """A deployment whose first revision is up."""
        self.do("create_deployment", desired_replicas=self.replicas, policy=ROLLING)
        self.current = self.add_revision()
        self.do("activate_revision", revision=self.current)
        self.settle()

    def do(self, command: str, **settings: object) -> dict[str, Any]:
        """Carry out a command; sent again, as the same request, while the database cannot be reached."""
        payload = {"request_id": uuid4().hex, "actor": "zero-loss", "deployment": self.name, **settings}
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                return send(parse_command(f"rollway.{command}", payload))
            except UnreachableError as error:
                if time.monotonic() > until:
                    raise ScenarioError(error.message) from error
                time.sleep(_POLL)
            except RollwayError as error:
                raise ScenarioError(f"{command} was refused: {error.message}") from error

    def add_revision(self, **env: str) -> str:
        """The next revision; its name."""
        name = f"v{next(self._numbers)}"
        spec = {
            "command": [sys.executable, str(project_root() / "tools" / "bench" / "replica.py")],
            "env": {"STARTUP_SECONDS": "0.3", "ENDS": "at-once", **env},
            "health_check": {"interval_seconds": 0.3, "start_deadline_seconds": 4 if "BROKEN" in env else 20},
            "drain_seconds": self.longest_request,
        }
        self.do("add_revision", name=name, spec=spec)
        return name

    def roll_out(self, policy: Mapping[str, Any] = ROLLING, **env: str) -> str:
        """Begin a rollout to a new revision; its name. `settle` waits for it."""
        self.do("set_policy", policy=policy)
        name = self.add_revision(**env)
        self.do("activate_revision", revision=name)
        return name

    def look(self) -> Picture:
        """How it stands now. Raises psycopg.OperationalError while the database cannot be reached."""
        rows = self.rows(
            """
            SELECT d.lifecycle, d.rollout_id, r.id::text, v.name AS revision, r.status, r.traffic_status AS traffic,
                   coalesce(r.address, '') AS address, coalesce(r.replica_handle, '') AS handle
              FROM deployments d LEFT JOIN routes r ON r.deployment_id = d.id AND r.stopped_at IS NULL
              LEFT JOIN revisions v ON v.id = r.revision_id
             WHERE d.name = %s ORDER BY r.id
            """,
            self.name,
        )
        names = RouteSeen.__slots__
        routes = tuple(RouteSeen(**{name: row[name] for name in names}) for row in rows if row["id"] is not None)
        return Picture(rows[0]["lifecycle"], rows[0]["rollout_id"] is not None, routes)

    def settle(self) -> None:
        """Wait until `current` runs alone, complete, in traffic, and every other replica has ended."""
        self.wait(self._is_settled, f"{self.replicas} x {self.current} and nothing else")

    def complete(self, new: str) -> None:
        """Wait until it is rolled out. Raises ScenarioError where the rollout ends otherwise."""
        self.current = new
        self.settle()
        self.expect(new, "completed")

    def expect(self, revision: str, outcome: str) -> None:
        """Raises ScenarioError where the last rollout to a revision has ended otherwise."""
        found = self.outcome(revision)
        if found != outcome:
            raise ScenarioError(f"the rollout to {revision} ended as {found or 'nothing'}, and should as {outcome}")

    def wait_for_middle(self, new: str) -> None:
        """Wait until the rollout to `new` is half done: new ones serve, and old ones too."""

        def is_half_done(now: Picture) -> bool:
            serving = [route.revision == new for route in now.routes if route.serves]
            return now.rolls_out and any(serving) and not all(serving)

        self.wait(is_half_done, f"a rollout to {new} that is half done")

    def outcome(self, revision: str) -> str:
        """How the last rollout to a revision ended; empty when there is none or it has not."""
        rows = self.rows(
            """
            SELECT o.outcome FROM rollouts o JOIN revisions v ON v.id = o.to_revision_id
              JOIN deployments d ON d.id = o.deployment_id WHERE d.name = %s AND v.name = %s ORDER BY o.started_at
            """,
            self.name,
            revision,
        )
        return str(rows[-1]["outcome"] or "") if rows else ""

    def left_traffic_at(self, revision: str) -> float | None:
        """When the proxies had acknowledged that no replica of it is in traffic, in Unix seconds; None before that."""
        rows = self.rows(
            """
            SELECT max(r.out_of_traffic_at) AS at, bool_or(r.out_of_traffic_at IS NULL) AS pending
              FROM routes r JOIN revisions v ON v.id = r.revision_id JOIN deployments d ON d.id = r.deployment_id
             WHERE d.name = %s AND v.name = %s AND r.drain_started_at IS NOT NULL
            """,
            self.name,
            revision,
        )
        if rows[0]["at"] is None or rows[0]["pending"]:
            return None
        return float(rows[0]["at"].timestamp())

    def drains(self) -> list[tuple[float, float | None]]:
        """For each route that was drained: when, and how many seconds until the last proxy had acknowledged it."""
        rows = self.rows(
            """
            SELECT r.drain_started_at AS at,
                   extract(epoch FROM r.out_of_traffic_at - r.drain_started_at)::float8 AS took
              FROM routes r JOIN deployments d ON d.id = r.deployment_id
             WHERE d.name = %s AND r.drain_started_at IS NOT NULL ORDER BY r.drain_started_at
            """,
            self.name,
        )
        return [(row["at"].timestamp(), row["took"]) for row in rows]

    def wait(self, condition: Callable[[Picture], object], what: str, within: float = _PATIENCE) -> None:
        """Look until it holds. Raises ScenarioError with what was waited for, and the last picture that was seen."""
        seen: list[Picture] = []

        def holds() -> bool:
            seen.append(self.look())
            return bool(condition(seen[-1]))

        try:
            eventually(holds, within, what)
        except NotInTimeError as error:
            raise ScenarioError(f"{error}; seen: {seen[-1:]}") from error

    def rows(self, query: str, *parameters: object) -> list[dict[str, Any]]:
        """What a query finds. Raises psycopg.OperationalError while the database cannot be reached."""
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(
                os.environ["DATABASE_URL"], autocommit=True, row_factory=dict_row, connect_timeout=3
            )
        try:
            return self._connection.execute(query, parameters).fetchall()
        except psycopg.OperationalError:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; the next look opens another."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
        self._connection = None

    def _is_settled(self, now: Picture) -> bool:
        complete = len(now.routes) == len([route for route in now.of(self.current) if route.serves]) == self.replicas
        return now.lifecycle == "ready" and not now.rolls_out and complete
