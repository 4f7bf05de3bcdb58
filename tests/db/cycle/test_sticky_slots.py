"""Seats in a real database: in a rollout the callers of each move once, those of others stay where they are."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, LiteralString
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.proxies.acks import note_known_weights
from domain.model.states import RouteStatus
from tests.support.pictures.pictures import PROVISIONING, READY
from tests.support.rows.deployments import ask, become, make_deployment, mark, read, start_all, write
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet

N = 10
STICKY = {"hosts": ["web"], "sticky": {"cookie": "rollway-replica"}}
WITHOUT_A_SEAT: LiteralString = """
    SELECT r.id FROM routes r JOIN rollouts o ON o.to_revision_id = r.revision_id
     WHERE r.traffic_status = 'active' AND r.seat IS NULL AND o.weight IS NOT NULL
"""
Seats = dict[int, UUID]


def seats(engine: Engine, revision: str = "%") -> Seats:
    """Who has which; nobody has what another one has."""
    rows = read(
        engine,
        "SELECT r.seat, r.id FROM routes r JOIN revisions v ON v.id = r.revision_id"
        " WHERE r.traffic_status = 'active' AND r.seat IS NOT NULL AND v.name LIKE %s ORDER BY r.seat",
        revision,
    )
    found = {row["seat"]: row["id"] for row in rows}
    assert len(found) == len(rows)
    return found


def until_it_rests(engine: Engine) -> Iterator[Seats]:
    """The seats after each step of what is going on."""
    coordinator = coordinator_without_redis(engine)
    before: tuple[Seats, int] | None = None
    for _ in range(100):
        run_until_quiet(coordinator)
        (row,) = read(engine, "SELECT count(*) AS n, max(id::text) AS newest FROM routes WHERE status <> 'terminating'")
        now = (seats(engine), hash((row["n"], row["newest"])))
        if now == before:
            return
        before = now
        yield now[0]
        start_all(engine)
        mark(engine, *(found["id"] for found in read(engine, "SELECT id FROM deployments")))
    raise AssertionError("it never comes to rest")


def at_rest(engine: Engine) -> Seats:
    *_, last = until_it_rests(engine)
    return last


def moved(before: Seats, after: Seats) -> set[int]:
    return {seat for seat in before | after if before.get(seat) != after.get(seat)}


@pytest.mark.parametrize(
    ("spec", "at_once", "first"),
    [
        ({"max_surge": 1, "max_unavailable": 0}, 1, 0),
        ({"max_surge": 3, "max_unavailable": 0}, 3, 7),
        ({"max_surge": "50%", "max_unavailable": 1}, 6, 0),
        ({"max_surge": 0, "max_unavailable": 1}, 1, 7),
    ],
)
def test_each_seat_goes_to_a_new_replica_once_and_no_more_at_once_than_are_replaced(
    engine: Engine, spec: dict[str, Any], at_once: int, first: int
) -> None:
    policy = {"strategy": "rolling_update", "spec": spec}
    make_deployment(engine, f"{'■' * N}|", n=N, status=PROVISIONING, policy=policy)
    ask(engine, "set_traffic", deployment="web", **STICKY)
    assert list(seats(engine)) == list(range(N)), "those that were there before have seats too"
    write(engine, "UPDATE routes SET seat = seat + %s", first)  # as there are when it was larger
    before, times, steps = seats(engine), Counter[int](), 0
    for now in until_it_rests(engine):
        assert list(now) == list(range(first, first + N))
        assert len(moved(before, now)) <= at_once
        times.update(moved(before, now))
        before, steps = now, steps + bool(moved(before, now))
    assert times == dict.fromkeys(range(first, first + N), 1)
    assert steps >= N / at_once
    assert read(engine, "SELECT lifecycle FROM deployments") == [{"lifecycle": "ready"}]
    assert read(engine, "SELECT count(*) AS n FROM routes WHERE seat IS NOT NULL") == [{"n": N}], "who left has none"


def test_a_green_set_takes_all_seats_in_the_transaction_that_promotes_it(engine: Engine) -> None:
    policy = {"strategy": "blue_green", "spec": {}}
    make_deployment(engine, "■■■|", status=PROVISIONING, policy=policy)
    ask(engine, "set_traffic", deployment="web", **STICKY)
    old = seats(engine)
    assert at_rest(engine) == old, "a set that is looked at has no seats"
    ask(engine, "promote", deployment="web")
    assert list(at_rest(engine)) == [0, 1, 2] == list(seats(engine, "v2"))


def test_each_side_of_a_canary_has_seats_of_its_own_which_stay_until_all_are_new(engine: Engine) -> None:
    policy = {"strategy": "canary", "spec": {"steps": ["5%", "50%"], "max_surge": 2, "max_unavailable": 0}}
    make_deployment(engine, "■■■■", n=4, policy=policy)
    ask(engine, "set_traffic", deployment="web", **STICKY)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    old, coordinator = seats(engine), coordinator_without_redis(engine)
    kept: Seats = {}
    weights: set[int] = set()
    for _ in range(40):
        run_until_quiet(coordinator)
        weights.update(row["weight"] for row in read(engine, "SELECT weight FROM rollouts WHERE outcome IS NULL"))
        new, left = seats(engine, "v2"), seats(engine, "v1")
        assert {seat: new.get(seat) for seat in kept} == kept, "who is of the canary keeps the seat"
        assert left.items() <= old.items()
        assert read(engine, WITHOUT_A_SEAT) == [], "nobody waits for one of the other side"
        kept = new
        start_all(engine)
        in_transaction(engine, note_known_weights)
        write(engine, "UPDATE rollouts SET promote_requested = true WHERE outcome IS NULL")
        mark(engine, *(found["id"] for found in read(engine, "SELECT id FROM deployments")))
    assert read(engine, "SELECT lifecycle FROM deployments") == [{"lifecycle": "ready"}]
    assert weights >= {0, 500, 5000}
    assert list(kept) == [0, 1, 2, 3]


def test_who_is_healthy_goes_before_who_came_first(engine: Engine) -> None:
    policy = {"strategy": "rolling_update", "spec": {"max_surge": 2, "max_unavailable": 0, "pacing": "continuous"}}
    made = make_deployment(engine, "■■■|◇■", status=PROVISIONING, policy=policy)
    ask(engine, "set_traffic", deployment="web", **STICKY)
    assert set(seats(engine).values()) == set(made.routes[:3])
    run_until_quiet(coordinator_without_redis(engine))
    assert set(seats(engine).values()) - set(made.routes[:3]) == {made.routes[4]}


def test_who_dies_leaves_the_seat_to_who_comes_and_a_smaller_set_keeps_its_own(engine: Engine) -> None:
    make_deployment(engine, "■■■■", n=4, status=READY)
    ask(engine, "set_traffic", deployment="web", **STICKY)
    before = seats(engine)
    ask(engine, "scale", deployment="web", desired_replicas=2)
    left = at_rest(engine)
    assert len(left) == 2
    assert left.items() <= before.items()
    ask(engine, "scale", deployment="web", desired_replicas=4)
    grown = at_rest(engine)
    assert list(grown) == [0, 1, 2, 3]
    assert left.items() <= grown.items()
    become(engine, RouteStatus.FAILED, grown[2])
    assert moved(grown, at_rest(engine)) == {2}


def test_nobody_has_a_seat_where_no_callers_stay(engine: Engine) -> None:
    make_deployment(engine, "■■■|", status=PROVISIONING)
    other = make_deployment(engine, "■■■", name="other")
    write(engine, "UPDATE deployments SET rules = %s WHERE id = %s", Jsonb({"hold_seconds": 3}), other.id)
    for now in until_it_rests(engine):
        assert now == {}
