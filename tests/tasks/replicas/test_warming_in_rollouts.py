"""Warm-ups while a rollout stands still, or goes back, and by the wire of callers: by passes as workers make them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tasks.replicas.probing import ProbePass
from tests.support.certificates.authorities import Authority
from tests.support.pictures.pictures import PROVISIONING
from tests.support.proxies.http2_replica import http2_replica
from tests.support.rows.deployments import HERE, ask, make_deployment, read, write
from tests.support.rows.hosts import up
from tests.support.stack.waiting import eventually
from tests.support.workers.cold_model import Model, warm_up
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet
from tests.support.workers.payloads import ELSEWHERE
from tests.support.workers.probed import secured
from tests.support.workers.probing import Looks, replica, status, until

SPEC = {**ELSEWHERE, "health_check": {"interval_seconds": 0.1}, "warm_up": warm_up(under_seconds=5)}
TIMES = 3
HEALTHY = "SELECT v.name, r.warmed_at FROM routes r JOIN revisions v ON v.id = r.revision_id WHERE r.status = 'healthy'"


class World:
    """Workers decide and probe; the other system runs what was created, and what was drained is gone."""

    def __init__(self, engine: Engine, model: Model, probing: ProbePass) -> None:
        self.engine, self.model, self.probing = engine, model, probing
        self.coordinator = coordinator_without_redis(engine)
        write(engine, "UPDATE routes SET address = NULL")
        self.place()
        write(engine, "UPDATE routes SET warmed_at = now() WHERE status = 'healthy'")

    def place(self) -> None:
        query = """
            UPDATE routes SET address = %s, host = %s, started_at = coalesce(started_at, clock_timestamp())
             WHERE address IS NULL
        """
        write(self.engine, query, self.model.address, HERE)

    def look(self) -> None:
        run_until_quiet(self.coordinator)
        self.place()
        gone = "UPDATE routes SET status = 'terminated', stopped_at = clock_timestamp() WHERE status = 'terminating'"
        write(self.engine, gone)
        write(self.engine, "UPDATE deployments SET due_at = clock_timestamp()")
        self.probing.look()
        assert all(row["warmed_at"] for row in self.healthy()), "none is healthy before it is warm"

    def healthy(self) -> list[dict[str, Any]]:
        return read(self.engine, HEALTHY)

    def runs(self, revision: str, count: int) -> bool:
        return [row["name"] for row in self.healthy()] == [revision] * count

    def until(self, condition: Callable[[], bool], what: str) -> None:
        def looked() -> bool:
            self.look()
            return condition()

        eventually(looked, 60, what)

    @property
    def reason(self) -> str:
        return str(read(self.engine, "SELECT reason FROM deployments")[0]["reason"])


@pytest.mark.parametrize(
    ("task", "payload", "reason"),
    [
        ("pause", {"deployment": "web"}, "paused"),
        ("set_freeze", {"freeze": "night", "duration_seconds": 3600}, "night"),
    ],
)
def test_a_rollout_that_stands_still_stops_no_warm_up(
    engine: Engine, model: Model, make_warm_pass: Looks, task: str, payload: dict[str, Any], reason: str
) -> None:
    up(engine, HERE)
    made = make_deployment(engine, "■■|◇", n=2, status=PROVISIONING, spec=SPEC)
    world = World(engine, model, make_warm_pass())
    ask(engine, task, **payload)
    world.until(lambda: reason in world.reason and status(engine, made.routes[2]) == "healthy", "it to be warm")
    assert len(model.requests) == TIMES
    assert len(world.healthy()) == 3, "nothing else has moved"


def test_what_comes_again_on_the_way_back_is_warm_before_it_serves(
    engine: Engine, model: Model, make_warm_pass: Looks
) -> None:
    up(engine, HERE)
    make_deployment(engine, "■|■◇", n=2, status=PROVISIONING, spec=SPEC)
    world = World(engine, model, make_warm_pass())
    ask(engine, "abort", deployment="web")
    run_until_quiet(world.coordinator)
    world.until(lambda: world.runs("v1", 2), "the revision of before")
    assert len(model.requests) == TIMES, "the new one, and not the one that was given up"


def test_an_undo_warms_up_the_replicas_that_it_starts(engine: Engine, model: Model, make_warm_pass: Looks) -> None:
    up(engine, HERE)
    make_deployment(engine, "■■", n=2, spec=SPEC)
    world = World(engine, model, make_warm_pass())
    write(engine, "UPDATE deployments SET current_revision_id = (SELECT id FROM revisions WHERE name = 'v1')")
    write(engine, "UPDATE routes SET revision_id = (SELECT id FROM revisions WHERE name = 'v1')")
    ask(engine, "activate_revision", deployment="web", revision="v2")
    world.until(lambda: world.runs("v2", 2), "the new revision")
    assert len(model.requests) == 2 * TIMES
    write(engine, "UPDATE routes SET parked_until = NULL")
    ask(engine, "undo", deployment="web")
    world.until(lambda: world.runs("v1", 2), "the revision of before")
    assert len(model.requests) == 4 * TIMES


@contextmanager
def http2_service(_: Path) -> Iterator[tuple[str, str]]:
    with http2_replica() as address:
        yield address, '{"protocol": "http2"}'


@contextmanager
def tls_service(folder: Path) -> Iterator[tuple[str, str]]:
    authority = Authority.make()
    (folder / "ca.pem").write_text(authority.pem)
    with secured(authority.certify("d0").written(folder)) as address:
        yield address, '{"protocol": "http1", "upstream_tls": {"ca": "file:/ca.pem"}}'


@pytest.mark.parametrize(("service", "protocol"), [(http2_service, "http2"), (tls_service, "http1")])
def test_a_replica_is_warmed_up_as_callers_ask_it(
    engine: Engine, make_warm_pass: Looks, tmp_path: Path, service: Any, protocol: str
) -> None:
    with service(tmp_path) as (address, wire):
        route_id = replica(engine, address, "◇", warm_up={"requests": [{"path": "/"}]}, protocol=protocol)
        write(engine, "UPDATE revisions SET wire = %s", wire)
        if (tmp_path / "ca.pem").exists():
            query = """
                INSERT INTO certificates (deployment_id, kind, name, chain)
                SELECT id, 'replicas', %s, %s FROM deployments
            """
            write(engine, query, "file:/ca.pem", (tmp_path / "ca.pem").read_text())
        until(make_warm_pass(), lambda: status(engine, route_id) == "healthy", seconds=30)
    (row,) = read(engine, "SELECT warmed_at IS NOT NULL AS is_warm FROM routes")
    assert row["is_warm"]
