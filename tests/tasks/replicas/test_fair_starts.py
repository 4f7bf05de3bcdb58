"""What cannot be started or stopped now is tried again at its own time, and holds up nobody else."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine
from structlog.testing import capture_logs

from db.connection.transactions import transaction
from db.replicas.host_placement import hosts_with_work
from domain.model.lifecycle_events import RouteLifecycleType
from runtime.docker.docker_runtime import DockerRuntime
from runtime.external_runtime import ExternalRuntime
from tasks.redis.wake import Waker
from tasks.replicas.host_replicas import HostReplicas
from tests.support.people.webhooks import Webhook, serving
from tests.support.pictures.pictures import SCALING
from tests.support.rows.deployments import HERE, Made, ask, make_deployment, read, write
from tests.support.stack.waiting import eventually
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet
from tests.support.workers.replicas import Runtimes, route, until_asked

SLEEPER = {"command": ["sleep", "60"]}
IN_DOCKER = {"runtime": "docker", "docker": {"image": "busybox"}, "drain_seconds": 0}
MANY = 60


@pytest.fixture
def host_replicas(engine: Engine, waker: Waker, runtimes: Runtimes, tmp_path: Path) -> HostReplicas:
    """Without an engine, and with a webhook that is waited for no longer than is waited in production."""
    docker = DockerRuntime(HERE, f"unix://{tmp_path}/nobody.sock")
    external = ExternalRuntime(lambda *_: None, patience_seconds=0.5)
    return HostReplicas(engine, {**runtimes, "docker": docker, "external": external}, waker, HERE, timedelta())


def at_a_webhook(hook: Webhook, grace: float = 0.3) -> dict[str, object]:
    external = {"webhook": hook.url}
    return {"runtime": "external", "external": external, "drain_seconds": 0, "stop_grace_seconds": grace}


def a_process(engine: Engine) -> Made:
    return make_deployment(engine, "◇", name="process", n=1, status=SCALING, spec=SLEEPER)


def lines(logs: Sequence[Mapping[str, object]], made: Made, event: str) -> int:
    """That say this of its routes: a thread of an earlier test may still be waiting."""
    ids = {str(route_id) for route_id in made.routes}
    return sum(1 for line in logs if str(line["event"]).startswith(event) and line.get("route") in ids)


def test_sixty_replicas_without_an_engine_starve_nobody_and_are_told_of_once(
    engine: Engine, host_replicas: HostReplicas
) -> None:
    boxes = make_deployment(engine, "◇" * MANY, name="box", n=MANY, status=SCALING, spec=IN_DOCKER)
    process = a_process(engine)
    with capture_logs() as logs:
        until_asked(engine, host_replicas, process.routes[0])
        eventually(lambda: host_replicas.start() is False)
        write(engine, "UPDATE routes SET next_start_at = now() WHERE deployment_id = %s", boxes.id)
        eventually(lambda: host_replicas.start() is False)
    assert lines(logs, boxes, "replica not started") == MANY, "once for each, and not for each try"
    waiting = read(engine, "SELECT * FROM routes WHERE deployment_id = %s", boxes.id)
    assert {row["start_tries"] for row in waiting} >= {2}
    assert all("no Docker engine" in row["status_reason"] for row in waiting)
    with transaction(engine) as connection:
        assert hosts_with_work(connection, [RouteLifecycleType.START]) == [], "each has a time of its own"


def test_a_webhook_that_drips_holds_up_no_other(engine: Engine, host_replicas: HostReplicas) -> None:
    with serving() as hook, serving() as other:
        hook.drip_seconds = 2
        make_deployment(engine, "◇" * 20, name="dripping", n=20, status=SCALING, spec=at_a_webhook(hook))
        process = a_process(engine)
        beside = make_deployment(engine, "◇", name="beside", n=1, status=SCALING, spec=at_a_webhook(other))
        ids = [process.routes[0], beside.routes[0]]
        assert host_replicas.start() is True, "some hang"
        eventually(lambda: host_replicas.start() is not None and all(route(engine, of)["started_at"] for of in ids))
        tries = "SELECT count(*)::int AS n FROM routes WHERE start_tries > 0"
        assert read(engine, tries) == [{"n": 0}], "not one of those that drip was given up before"
        eventually(lambda: host_replicas.start() is not None and read(engine, tries)[0]["n"] > 0)
        (why,) = read(engine, "SELECT DISTINCT status_reason FROM routes WHERE start_tries > 0")
        assert why["status_reason"].endswith("has not answered within 5 s")
        hook.drip_seconds = 0


def test_what_was_postponed_is_started_when_its_runtime_is_back(engine: Engine, host_replicas: HostReplicas) -> None:
    with serving() as hook:
        hook.status, hook.text = 503, "not now\0"
        away = make_deployment(engine, "◇", name="away", n=1, status=SCALING, spec=at_a_webhook(hook))
        with capture_logs() as logs:
            eventually(lambda: host_replicas.start() is not None and route(engine, away.routes[0])["start_tries"])
            assert route(engine, away.routes[0])["status_reason"].endswith("answered 503 not now\ufffd")
            hook.status = 202
            eventually(lambda: host_replicas.start() is not None and route(engine, away.routes[0])["started_at"])
    started = route(engine, away.routes[0])
    assert started["status_reason"] == ""
    assert started["started_at"] >= started["next_start_at"]
    assert [lines(logs, away, event) for event in ("replica not started", "replica started at last")] == [1, 1]


def left(engine: Engine, look: Callable[[], bool], made: Made) -> dict[str, object]:
    """The first route, once it is terminated."""
    eventually(lambda: look() is not None and route(engine, made.routes[0])["status"] == "terminated")
    return route(engine, made.routes[0])


def test_the_first_asking_counts_though_nobody_heard_it_so_that_the_kill_follows(
    engine: Engine, host_replicas: HostReplicas
) -> None:
    with serving() as hook:
        made = make_deployment(engine, "◇", name="away", n=1, status=SCALING, spec=at_a_webhook(hook))
        until_asked(engine, host_replicas, made.routes[0])
    ask(engine, "destroy", deployment="away")
    run_until_quiet(coordinator_without_redis(engine))
    with capture_logs() as logs:
        gone = left(engine, host_replicas.stop, made)
    assert gone["stop_requested_at"] is not None
    assert lines(logs, made, "replica not stopped") == 1
    assert lines(logs, made, "a kill was never answered") == 1


def test_a_replica_that_is_to_stop_and_was_never_started_is_gone_at_once(
    engine: Engine, host_replicas: HostReplicas
) -> None:
    with serving() as hook:
        hook.status = 503
        away = make_deployment(engine, "◇", name="away", n=1, status=SCALING, spec=at_a_webhook(hook, grace=3600))
        eventually(lambda: host_replicas.start() is not None and hook.asked)
    box = make_deployment(engine, "◇", name="box", n=1, status=SCALING, spec=IN_DOCKER)
    for name in ("away", "box"):
        ask(engine, "destroy", deployment=name)
    run_until_quiet(coordinator_without_redis(engine))
    host_replicas.stop()
    assert route(engine, box.routes[0])["status"] == "terminated"
    left(engine, host_replicas.stop, away)


def test_who_is_asked_again_after_nobody_heard_is_ended_gracefully(engine: Engine, host_replicas: HostReplicas) -> None:
    with serving() as hook:
        made = make_deployment(engine, "◇", name="away", n=1, status=SCALING, spec=at_a_webhook(hook, grace=60))
        until_asked(engine, host_replicas, made.routes[0])
        ask(engine, "destroy", deployment="away")
        run_until_quiet(coordinator_without_redis(engine))
        hook.status = 503
        host_replicas.stop()
        assert route(engine, made.routes[0])["stop_requested_at"] is not None
        hook.status = 202
        eventually(lambda: host_replicas.stop() is not None and len(hook.asked) > 2)
        assert [asked["action"] for asked in hook.asked] == ["start", "stop", "stop"]
