"""When a replica is called healthy, unhealthy or failed by what its probes say."""

from datetime import timedelta

import psutil
from sqlalchemy import Engine

from runtime.process.process_runtime import ProcessRuntime
from tasks.redis.wake import Waker
from tasks.replicas.host_replicas import HostReplicas
from tests.support.pictures.pictures import SCALING
from tests.support.rows.deployments import HERE, make_deployment, read, write
from tests.support.workers.probing import BROKEN, OK, Looks, Service, replica, serving, status, until
from tests.support.workers.replicas import until_started
from tests.support.workers.runtimes import HTTP_SERVICE, pid_of


def test_the_first_probe_after_a_silence_makes_a_degraded_replica_healthy_or_unhealthy(
    engine: Engine, service: Service, make_pass: Looks
) -> None:
    with serving() as sick:
        sick.reply = BROKEN
        well, ill = replica(engine, service.address), replica(engine, sick.address, failure_threshold=1)
        probing = make_pass()
        until(probing, lambda: (status(engine, well), status(engine, ill)) == ("healthy", "unhealthy"))
        write(engine, "UPDATE routes SET status = 'degraded'")
        until(probing, lambda: (status(engine, well), status(engine, ill)) == ("healthy", "unhealthy"))
        rows = read(engine, "SELECT status_reason FROM routes ORDER BY id")
        assert [row["status_reason"] for row in rows] == ["GET /health answered 200", "GET /health answered 503"]


def test_as_many_failures_as_the_threshold_says_make_a_replica_unhealthy(
    engine: Engine, service: Service, make_pass: Looks
) -> None:
    service.reply = BROKEN
    route_id = replica(engine, service.address, failure_threshold=5, interval_seconds=0.5)
    until(make_pass(), lambda: status(engine, route_id) == "unhealthy")
    assert 5 <= len(service.connections) <= 6, "one more may be on its way"


def test_failures_in_a_row_are_counted_and_a_success_clears_them(
    engine: Engine, service: Service, make_pass: Looks
) -> None:
    route_id = replica(engine, service.address, failure_threshold=100)

    def streak() -> int:
        return int(read(engine, "SELECT probe_streak FROM routes WHERE id = %s", route_id)[0]["probe_streak"])

    service.reply = BROKEN
    until(make_pass(), lambda: streak() == 2)
    until(make_pass(), lambda: streak() >= 4)
    service.reply = OK
    until(make_pass(), lambda: streak() == 0)


def test_the_end_of_a_process_is_noticed_soon_however_seldom_it_is_probed(
    engine: Engine, waker: Waker, runtimes: dict[str, ProcessRuntime], make_pass: Looks
) -> None:
    check = {"interval_seconds": 3600, "start_deadline_seconds": 30}
    spec = {"command": list(HTTP_SERVICE), "health_check": check}
    route_id = make_deployment(engine, "◇", n=1, status=SCALING, spec=spec).routes[0]
    until_started(HostReplicas(engine, runtimes, waker, HERE, timedelta(seconds=5)))
    probing = make_pass({**runtimes})
    until(probing, lambda: status(engine, route_id) == "healthy")
    psutil.Process(pid_of(runtimes["process"].find(route_id))).kill()
    until(probing, lambda: status(engine, route_id) == "failed")
    (row,) = read(engine, "SELECT status_reason FROM routes")
    assert row["status_reason"] == "its process was killed by SIGKILL", "no probe has told of it"


def test_a_replica_without_an_address_is_not_probed_and_fails_at_its_start_deadline(
    engine: Engine, service: Service, make_pass: Looks
) -> None:
    reported = replica(engine, None, "◇")
    never = replica(engine, None, "◇", start_deadline_seconds=1)
    probing = make_pass()
    until(probing, lambda: status(engine, never) == "failed")
    (row,) = read(engine, "SELECT status_reason FROM routes WHERE id = %s", never)
    assert row["status_reason"] == "not healthy within 1 s of its start: no probe was answered yet"
    assert status(engine, reported) == "provisioning"
    write(engine, "UPDATE routes SET address = %s WHERE id = %s", service.address, reported)
    until(probing, lambda: status(engine, reported) == "healthy")


def test_a_replica_that_starts_for_long_says_what_its_last_probe_was_answered(
    engine: Engine, service: Service, make_pass: Looks
) -> None:
    service.reply = BROKEN
    route_id = replica(engine, service.address, "◇", start_deadline_seconds=600)
    write(engine, "UPDATE routes SET started_at = now() - interval '2.5 seconds' WHERE id = %s", route_id)

    def said() -> str:
        return str(read(engine, "SELECT status_reason FROM routes WHERE id = %s", route_id)[0]["status_reason"])

    until(make_pass(), lambda: said() == "not healthy yet: GET /health answered 503")
    assert status(engine, route_id) == "provisioning"


def test_a_start_deadline_tells_what_was_seen_last(engine: Engine, service: Service, make_pass: Looks) -> None:
    service.reply = BROKEN
    route_id = replica(engine, service.address, "◇", start_deadline_seconds=1)
    until(make_pass(), lambda: status(engine, route_id) == "failed")
    (row,) = read(engine, "SELECT status_reason FROM routes")
    assert row["status_reason"] == "not healthy within 1 s of its start: GET /health answered 503"


def test_a_sick_replica_that_answers_no_probe_is_asked_for_its_answers_to_callers(
    engine: Engine, service: Service, make_pass: Looks
) -> None:
    """One that says by 503 that it is sick is not, nor is one whose probes are answered again."""
    route_id, probing = replica(engine, service.address, failure_threshold=2, timeout_seconds=3), make_pass()
    for reply, becomes, is_late in ((None, "unhealthy", True), (OK, "healthy", None), (BROKEN, "unhealthy", None)):
        service.reply = reply
        until(probing, lambda wanted=becomes: status(engine, route_id) == wanted)  # type: ignore[misc]
        (row,) = read(engine, "SELECT kept_until = status_changed_at AS is_late FROM routes WHERE id = %s", route_id)
        assert row == {"is_late": is_late}, becomes
