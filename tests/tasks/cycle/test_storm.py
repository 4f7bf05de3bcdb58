"""Everything at once, by dice: coordinators, reports of health, users, and connections that are cut.

The guards of Postgres look over the shoulder of every transaction; that none had to refuse one is seen in the timeline,
which holds no error. At the end the weather calms down, and everything must come to rest as it was asked for.
"""

import random
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import Engine

from db.audit.invariants import impossible_combinations
from db.connection.transactions import in_transaction
from db.replicas.host_routes import record_stopped
from db.replicas.reports import RouteReport, apply_reports
from domain.handlers.dispatch import HANDLERS
from domain.model.states import RouteStatus
from domain.text.errors import RollwayError
from tests.support.people.soak_report import leave, size
from tests.support.rows.databases import engine_on
from tests.support.rows.deployments import SPEC, ask, drawn, make_deployment, read, snapshot, write
from tests.support.stack.servers import EmbeddedServer
from tests.support.workers.coordinators import assert_nothing_happened_twice, coordinator_without_redis, run_until_quiet

LONGEST = 600.0
ATTEMPTS = 5
"""How often a transaction is tried whose connection is cut."""
NAMES = ("a", "b", "c", "d")

POLICIES = [
    {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 1}},
    {"strategy": "rolling_update", "spec": {"max_surge": "50%", "max_unavailable": 0, "pacing": "continuous"}},
    {"strategy": "blue_green", "spec": {"auto_promote": True, "scale_down_delay_seconds": 1}},
    {"strategy": "blue_green", "spec": {"auto_promote": False}},
    {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 1, "count_stopping": True}},
    {"strategy": "recreate"},
]

WEATHER = [RouteStatus.HEALTHY] * 12 + [RouteStatus.UNHEALTHY] * 2 + [RouteStatus.DEGRADED] + [RouteStatus.FAILED]


def coordinate(engine: Engine, dice: random.Random) -> None:
    handler = dice.choice(list(HANDLERS.values()))
    coordinator_without_redis(engine, chunk=dice.choice([1, 3])).process_chunk(handler)


def probe(engine: Engine, dice: random.Random) -> None:
    """Health as it comes; who is on the way out is sometimes found to be gone."""
    routes = read(engine, "SELECT id, deployment_id, status FROM routes WHERE status NOT IN ('terminated', 'failed')")
    leaving = [route["id"] for route in routes if route["status"] == "terminating"]
    reports = [
        seen_as(route, status)
        for route in dice.sample(routes, len(routes) // 2)
        if (status := dice.choice(WEATHER)) and route["status"] != "terminating"
    ]
    in_transaction(engine, lambda connection: apply_reports(connection, reports))
    in_transaction(engine, lambda connection: record_stopped(connection, leaving))


def seen_as(route: dict[str, Any], status: RouteStatus) -> RouteReport:
    was = RouteStatus(route["status"])
    return RouteReport(route["id"], route["deployment_id"], was, status, reason="seen", address="h:1")


def command(engine: Engine, dice: random.Random) -> None:
    name = dice.choice(NAMES)
    with suppress(RollwayError):  # a refusal is an answer too
        match dice.randrange(12):
            case 0 | 1:
                ask(engine, "scale", deployment=name, desired_replicas=dice.randrange(5))
            case 2 | 3 | 4 | 5:
                revision, supersede = dice.choice(["v1", "v2", "v3"]), dice.random() < 0.5
                ask(engine, "activate_revision", deployment=name, revision=revision, supersede=supersede)
            case 6 | 7 | 8:
                ask(engine, dice.choice(["promote", "abort", "undo", "retry"]), deployment=name)
            case 9:
                ask(engine, dice.choice(["pause", "resume", "resume"]), deployment=name)
            case 10:
                ask(engine, "destroy", deployment=name)
            case 11:
                ask(engine, "create_deployment", deployment=name, desired_replicas=2, policy=dice.choice(POLICIES))
                for revision in ("v1", "v2", "v3"):
                    ask(engine, "add_revision", deployment=name, name=revision, spec=SPEC)
                ask(engine, "activate_revision", deployment=name, revision="v1")


def cut(server: EmbeddedServer, cuts: Counter[str], dice: random.Random) -> None:
    """One of the busy connections of these works, from outside. Each work bears some cuts before it ends."""
    bearable = [work for work, number in list(cuts.items()) if number < ATTEMPTS - 1]
    with psycopg.connect(server.url, autocommit=True) as other:
        busy = "SELECT pid, application_name FROM pg_stat_activity WHERE application_name = ANY(%s) AND state <> 'idle'"
        if connections := other.execute(busy, (bearable,)).fetchall():
            pid, work = dice.choice(connections)
            cuts[work] += 1
            other.execute("SELECT pg_terminate_backend(%s)", (pid,))


@pytest.mark.timeout(LONGEST + 120)
@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_happens_at_once_the_budget_holds_and_the_end_is_what_was_asked_for(
    engine: Engine, database: str, postgres_server: EmbeddedServer, seed: int
) -> None:
    rollouts = size("storm", quick=25)
    for name in NAMES:
        made = make_deployment(engine, "■■■", name=name)
        write(engine, "INSERT INTO revisions (deployment_id, name, spec) VALUES (%s, 'v3', '{}')", made.id)
    over, broke, done, cuts = threading.Event(), list[str](), Counter[str](), Counter[str]()

    def again_and_again(work: Callable[[Engine, random.Random], None], number: int, pause: float) -> None:
        name = f"{uuid4()} {work.__name__}"
        dice, own = random.Random(f"{seed}-{number}"), engine_on(database, name)
        while not over.wait(dice.random() * pause):
            cuts[name] = 0
            try:
                work(own, dice)
                done[work.__name__] += 1
            except Exception as error:  # noqa: BLE001  (told at the end)
                broke.append("".join(traceback.format_exception(error)))
        own.dispose()

    def cutting(_: Engine, dice: random.Random) -> None:
        if done["coordinate"] + done["command"] >= 20 * done["cuts"]:  # or a slow machine gets nothing done
            cut(postgres_server, cuts, dice)
            done["cuts"] += 1

    works = [(coordinate, 0.005), (coordinate, 0.005), (probe, 0.01), (command, 0.03), (command, 0.03), (cutting, 0.3)]
    threads = [
        threading.Thread(target=again_and_again, args=(work, number, pause))
        for number, (work, pause) in enumerate(works)
    ]
    run(threads, over, lambda: rollouts_begun(engine) >= rollouts)
    assert broke == []
    assert done["coordinate"] > 50
    assert done["command"] > 20
    assert done["cuts"] > 5
    calm_down(engine)
    assert_nothing_went_wrong(engine)
    assert rollouts_begun(engine) >= rollouts
    leave("storm", rollouts=rollouts_begun(engine), faults=done["cuts"], checks=done["coordinate"])


def run(threads: list[threading.Thread], over: threading.Event, enough: Callable[[], bool]) -> None:
    """All of them until it is enough, or has taken long enough."""
    for thread in threads:
        thread.start()
    ends_at = time.monotonic() + LONGEST
    while time.monotonic() < ends_at and not enough():
        time.sleep(0.2)
    over.set()
    for thread in threads:
        thread.join(60)


def assert_nothing_went_wrong(engine: Engine) -> None:
    assert read(engine, "SELECT message FROM deployment_history WHERE result = 'error'") == []
    assert in_transaction(engine, impossible_combinations) == []
    assert_nothing_happened_twice(engine)


def rollouts_begun(engine: Engine) -> int:
    (row,) = read(engine, "SELECT count(*) AS begun FROM rollouts")
    return int(row["begun"])


def calm_down(engine: Engine) -> None:
    """Every replica is well, every wait over, again and again until nothing moves; then look at each deployment."""
    coordinator = coordinator_without_redis(engine)
    for _ in range(40):
        for name in NAMES:
            for steer in ("resume", "promote"):
                with suppress(RollwayError):  # whoever waits for a person gets one
                    ask(engine, steer, deployment=name)
        write(engine, "UPDATE routes SET parked_until = now() WHERE parked_until IS NOT NULL")
        write(
            engine,
            "UPDATE deployments SET due_at = now(), retry_at = retry_at - interval '1 hour',"
            " last_failed_at = last_failed_at - interval '1 hour' WHERE lifecycle <> 'destroyed'",
        )
        run_until_quiet(coordinator)
        routes = read(engine, "SELECT * FROM routes WHERE status NOT IN ('terminated', 'failed')")
        reports = [seen_as(route, RouteStatus.HEALTHY) for route in routes]
        leaving = [route["id"] for route in routes if route["status"] == "terminating"]
        in_transaction(engine, partial(record_stopped, route_ids=leaving))
        changed = in_transaction(engine, partial(apply_reports, reports=reports))
        parked = [route for route in routes if route["parked_until"] is not None]
        if not (changed or leaving or parked or read(engine, "SELECT 1 FROM rollouts WHERE ended_at IS NULL")):
            break
    rows = read(engine, "SELECT id, lifecycle, desired_replicas, current_revision_id FROM deployments")
    assert {row["lifecycle"] for row in rows} <= {"ready", "destroyed", "pending"}
    for row in rows:
        wanted = "■" * row["desired_replicas"] if row["lifecycle"] == "ready" else ""
        assert drawn(engine, row["id"]) == wanted
        assert snapshot(engine, row["id"]).rollout is None
    assert read(engine, "SELECT 1 FROM rollouts WHERE ended_at IS NULL") == []
