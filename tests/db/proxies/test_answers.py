"""Intervals of a rollout's answers: written once, read in order, gone with the rollout."""

from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Barrier, Thread

from sqlalchemy import Engine

from db.audit.receipts import against_plan, made_from_rows
from db.connection.transactions import in_transaction, transaction
from db.proxies.acks import SeenProxy, note_proxies, note_publisher
from db.proxies.measurements import due_rollouts, live_proxies, record_look
from db.proxies.recorded_answers import counters_of, intervals_of, record_interval
from domain.model.answer_counts import FIRST_BYTE_MS, Answers, Copies, Counters, Interval
from domain.model.states import DeploymentLifecycleStatus, DeploymentSubStep, Lifecycle
from tests.support.rows.deployments import Made, make_deployment, write

DEPLOYING = DeploymentLifecycleStatus(Lifecycle.DEPLOYING, DeploymentSubStep.PROVISIONING)
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
SOME = Answers(412, 9, (403, *(0 for _ in FIRST_BYTE_MS)), 2, 420, 3, 5, 1, 6)


def interval(made: Made, number: int, *, quiet: bool = False, reporting: int = 2) -> Interval:
    of = {} if quiet else {made.v1: SOME, made.v2: Answers(number, 0)}
    copies = Copies() if quiet else Copies(5, 1)
    return Interval(number, BEGAN + timedelta(seconds=2 * number), 2, of, reporting, 2, copies=copies)


def record(engine: Engine, made: Made, *intervals: Interval) -> list[bool]:
    assert made.rollout_id is not None
    counted = {"edge": Counters(9, {made.v1: SOME}, 4, Copies(70, 7))}
    work = partial(record_interval, rollout_id=made.rollout_id, counters=counted)
    return [in_transaction(engine, partial(work, interval=interval)) for interval in intervals]


def recorded(engine: Engine, made: Made) -> list[Interval]:
    assert made.rollout_id is not None
    return in_transaction(engine, partial(intervals_of, rollout_id=made.rollout_id))


def test_intervals_are_read_as_they_were_written(engine: Engine) -> None:
    made = make_deployment(engine, "■|■", status=DEPLOYING)
    written = [interval(made, 1), interval(made, 2, reporting=1), interval(made, 3)]
    assert record(engine, made, *written) == [True, True, True]
    assert recorded(engine, made) == written
    assert made.rollout_id is not None
    counted = in_transaction(engine, partial(counters_of, rollout_id=made.rollout_id))
    assert counted == {"edge": Counters(9, {made.v1: SOME}, 4, Copies(70, 7))}


def test_an_interval_is_written_once_whoever_else_writes_it(engine: Engine) -> None:
    made, written, begin = make_deployment(engine, "■|■", status=DEPLOYING), [], Barrier(4)

    def write_one() -> None:
        begin.wait()
        written.extend(record(engine, made, interval(made, 1)))

    servers = [Thread(target=write_one) for _ in range(4)]
    for server in servers:
        server.start()
    for server in servers:
        server.join()
    assert sorted(written) == [False, False, False, True]
    assert record(engine, made, interval(made, 1), interval(made, 3)) == [False, False]
    assert recorded(engine, made) == [interval(made, 1)]


def test_quiet_intervals_are_one_that_grows(engine: Engine) -> None:
    made = make_deployment(engine, "■|■", status=DEPLOYING)
    quiet = [interval(made, number, quiet=True) for number in (1, 2, 3)]
    record(engine, made, *quiet, interval(made, 4, quiet=True, reporting=1), interval(made, 5))
    first, *others = recorded(engine, made)
    assert (first.id, first.at, first.seconds) == (3, quiet[-1].at, 6)
    assert others == [interval(made, 4, quiet=True, reporting=1), interval(made, 5)]


def test_what_proxies_tell_is_an_interval_since_they_told_last(engine: Engine) -> None:
    made = make_deployment(engine, "■|■", status=DEPLOYING)
    make_deployment(engine, "■", name="rests", n=1)
    proxies = [SeenProxy("edge", "envoy", 10, stats_address="10.0.0.9:9902"), SeenProxy("mute", "traefik", 10)]

    def look(done: int) -> None:
        with transaction(engine) as connection:
            note_publisher(connection, "server")
            note_proxies(connection, proxies)
            live = live_proxies(connection)
            assert live == [("edge", "10.0.0.9:9902", False), ("mute", None, False)]
            (rollout,) = due_rollouts(connection, 0)
            told = {"edge": Counters(done, {made.v1: Answers(done), made.v2: Answers()})}
            assert record_look(connection, rollout, told, len(live))
            assert not record_look(connection, rollout, told, len(live)), "it has been written"

    for done in (70, 75, 78):
        look(done)
    with transaction(engine) as connection:
        assert due_rollouts(connection, 60) == []
    first, second, third = recorded(engine, made)
    assert (first.of, second.of, third.of) == ({}, {made.v1: Answers(5)}, {made.v1: Answers(3)})
    assert [(interval.reporting, interval.live) for interval in (first, third)] == [(1, 2), (1, 2)]
    assert made.rollout_id is not None
    with transaction(engine) as connection:
        requests = made_from_rows(connection, made.rollout_id)["requests"]
        assert against_plan(connection, made.rollout_id).requests == requests["said"]
    assert requests["said"] == "v1: 0 of 8 failed; v2: no requests recorded; only 1 of 2 proxies told at the worst time"


def test_intervals_go_with_their_rollout(engine: Engine) -> None:
    made = make_deployment(engine, "■|■", status=DEPLOYING)
    record(engine, made, interval(made, 1))
    write(engine, "UPDATE routes SET rollout_id = NULL WHERE deployment_id = %s", made.id)
    status = "lifecycle = 'ready', sub_step = NULL, deploying_revision_id = NULL, rollout_id = NULL"
    write(engine, f"UPDATE deployments SET {status} WHERE id = %s", made.id)
    write(engine, "DELETE FROM rollouts WHERE id = %s", made.rollout_id)
    assert recorded(engine, made) == []
