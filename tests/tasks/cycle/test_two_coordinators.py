"""Two coordinators at once without any Redis lock: Postgres alone keeps the budget."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from uuid import UUID

import pytest
from sqlalchemy import Engine

from domain.model.states import DeploymentLifecycleStatus
from tasks.cycle.coordinator import DeploymentCoordinator
from tests.support.pictures.pictures import PROVISIONING, READY
from tests.support.rows.databases import engine_on
from tests.support.rows.deployments import ask, make_deployment, mark, read, start_all
from tests.support.workers.coordinators import (
    assert_nothing_happened_twice,
    coordinator_without_redis,
    handler_for,
    run_until_quiet,
)

N, SURGE, UNAVAILABLE = 3, 1, 1
OUT_OF_BUDGET = """
    SELECT d.name, count(r.id) FILTER (WHERE r.status NOT IN ('terminating', 'terminated', 'failed')) AS live,
           count(r.id) FILTER (WHERE r.status = 'healthy' AND r.traffic_status = 'active') AS serving
      FROM deployments d LEFT JOIN routes r ON r.deployment_id = d.id
     GROUP BY d.name
    HAVING count(r.id) FILTER (WHERE r.status NOT IN ('terminating', 'terminated', 'failed')) > %s
        OR count(r.id) FILTER (WHERE r.status = 'healthy' AND r.traffic_status = 'active') < %s
"""


def out_of_budget(engine: Engine) -> list[dict[str, object]]:
    return read(engine, OUT_OF_BUDGET, N + SURGE, N - UNAVAILABLE)


@contextmanager
def watched(database: str) -> Iterator[list[dict[str, object]]]:
    """Somebody who looks on all the while, through one snapshot after the other; yields what they saw go wrong."""
    engine, over, seen = engine_on(database), threading.Event(), []

    def look() -> None:
        while not over.wait(0.002):
            seen.extend(out_of_budget(engine))

    onlooker = threading.Thread(target=look)
    onlooker.start()
    try:
        yield seen
    finally:
        over.set()
        onlooker.join(10)
        engine.dispose()


def at_once(work: Sequence[Callable[[], object]]) -> None:
    """All of them, started together; raises what the first of them raised."""
    barrier, raised = threading.Barrier(len(work), timeout=600), []

    def run(task: Callable[[], object]) -> None:
        barrier.wait()
        try:
            task()
        except Exception as error:  # noqa: BLE001  (told below)
            raised.append(error)

    threads = [threading.Thread(target=run, args=(task,)) for task in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if raised:
        raise raised[0]


def claims(coordinator: DeploymentCoordinator, ids: Sequence[UUID], status: DeploymentLifecycleStatus) -> None:
    """As after a message delivered twice: each takes what the other leaves."""
    assert ids
    coordinator.process_chunk(handler_for(status))


def insists(coordinator: DeploymentCoordinator, ids: Sequence[UUID], status: DeploymentLifecycleStatus) -> None:
    """As after a failed chunk: each waits for the other's lock and then decides about the same ones anew."""
    coordinator._retry(handler_for(status), ids)


@pytest.mark.parametrize("way", [claims, insists])
@pytest.mark.parametrize(("count", "rounds"), [(1, 100), (20, 15)])
def test_two_coordinators_at_once_keep_the_budget_without_a_redis_lock(
    engine: Engine,
    database: str,
    way: Callable[[DeploymentCoordinator, Sequence[UUID], DeploymentLifecycleStatus], None],
    count: int,
    rounds: int,
) -> None:
    ids = [make_deployment(engine, "■■■", name=f"web-{number}").id for number in range(count)]
    run_until_quiet(coordinator_without_redis(engine))
    both = [engine_on(database) for _ in range(2)]
    two = [coordinator_without_redis(own, chunk=7) for own in both]
    begun = 0
    with watched(database) as seen:
        for _ in range(rounds):
            if read(engine, "SELECT 1 FROM deployments WHERE lifecycle = 'deploying'") == []:
                begun += 1
                for number in range(count):
                    ask(engine, "activate_revision", deployment=f"web-{number}", revision=("v1", "v2")[begun % 2])
            mark(engine, *ids)
            at_once([partial(way, coordinator, ids, PROVISIONING) for coordinator in two])
            assert out_of_budget(engine) == []
            start_all(engine)
    for own in both:
        own.dispose()
    assert seen == []
    assert begun > rounds / 10
    assert_nothing_happened_twice(engine)


def test_every_change_takes_the_next_version_and_none_is_skipped(engine: Engine, database: str) -> None:
    made = make_deployment(engine, "■■■|", status=PROVISIONING)
    both = [engine_on(database) for _ in range(2)]
    two = [coordinator_without_redis(own) for own in both]
    version = 1
    for _ in range(7):
        at_once([partial(insists, coordinator, [made.id], PROVISIONING) for coordinator in two])
        changes = read(engine, "SELECT count(*) AS c FROM rollout_steps")[0]["c"]
        healthy = read(
            engine, "SELECT count(*) AS c FROM routes WHERE revision_id = %s AND status = 'healthy'", made.v2
        )
        (row,) = read(engine, "SELECT version, lifecycle FROM deployments")
        version = 1 + changes + healthy[0]["c"]
        assert row["version"] == version
        start_all(engine)
    assert (row["lifecycle"], version) == (READY.lifecycle, 8)
    for own in both:
        own.dispose()
