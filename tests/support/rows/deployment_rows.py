"""What Postgres says of deployments by their names, looked at over one connection, which a test may cut."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.support.proxies import plain_http


class DeploymentRows:
    """The deployments of one database."""

    def __init__(self, database: str) -> None:
        self.database = database
        self._looking: psycopg.Connection[dict[str, Any]] | None = None

    def close(self) -> None:
        if self._looking is not None:
            self._looking.close()

    def state(self, name: str) -> dict[str, Any]:
        (row,) = self.rows("SELECT * FROM deployments WHERE name = %s", name)
        return row

    def routes(self, name: str, statuses: str = "healthy") -> list[dict[str, Any]]:
        return self.rows(
            """
            SELECT r.*, v.name AS revision FROM routes r
              JOIN deployments d ON d.id = r.deployment_id JOIN revisions v ON v.id = r.revision_id
             WHERE d.name = %s AND r.status = ANY(string_to_array(%s, ' ')) ORDER BY r.id
            """,
            name,
            statuses,
        )

    def healthy(self, name: str) -> list[str]:
        """The ids of the healthy routes, sorted."""
        return sorted(str(route["id"]) for route in self.routes(name))

    def answers(self, name: str) -> list[str]:
        """What each live replica says over HTTP that it is."""
        live = self.routes(name, "provisioning healthy unhealthy degraded")
        return [plain_http.get(f"http://{route['address']}/").json()["revision"] for route in live]

    def serving(self, name: str) -> list[str]:
        """The revisions of the healthy routes in traffic."""
        return [route["revision"] for route in self.routes(name) if route["traffic_status"] == "active"]

    def all_routes(self, name: str) -> list[dict[str, Any]]:
        return self.rows(
            "SELECT r.* FROM routes r JOIN deployments d ON d.id = r.deployment_id WHERE d.name = %s", name
        )

    def rollouts(self, name: str) -> list[dict[str, Any]]:
        query = "SELECT o.* FROM rollouts o JOIN deployments d ON d.id = o.deployment_id WHERE d.name = %s"
        return self.rows(f"{query} ORDER BY o.started_at", name)

    def steps(self, name: str) -> list[str]:
        """Every stored step of the deployment's rollouts, as "number verdict"."""
        query = """
            SELECT s.step_no || ' ' || s.verdict AS step FROM rollout_steps s JOIN rollouts o ON o.id = s.rollout_id
              JOIN deployments d ON d.id = o.deployment_id WHERE d.name = %s ORDER BY o.started_at, s.step_no
        """
        return [row["step"] for row in self.rows(query, name)]

    def rows(self, query: str, *parameters: object) -> list[dict[str, Any]]:
        if self._looking is None or self._looking.closed:
            self._looking = psycopg.connect(self.database, autocommit=True, row_factory=dict_row)
        return self._looking.execute(query, parameters).fetchall()

    @contextmanager
    def watching_the_budget(self, name: str, floor: int, ceiling: int) -> Iterator[None]:
        """Afterwards, no stored step of the deployment's rollouts went beyond the budget."""
        yield
        for step in self.rows(
            """
            SELECT s.inputs, s.decision FROM rollout_steps s JOIN rollouts o ON o.id = s.rollout_id
              JOIN deployments d ON d.id = o.deployment_id WHERE d.name = %s ORDER BY s.at
            """,
            name,
        ):
            routes = step["inputs"]["deployment"]["routes"]
            live = [route for route in routes if route["status"] not in ("terminating", "terminated", "failed")]
            changes = step["decision"]["changes"]
            created = sum(spec["count"] for spec in changes["rollout_specs"])
            drained = set(changes["drain_route_ids"])
            serving = {route["id"] for route in live if route["status"] == "healthy"}
            assert len(live) + created <= ceiling or not created
            assert len(serving - drained) >= floor or not serving & drained
