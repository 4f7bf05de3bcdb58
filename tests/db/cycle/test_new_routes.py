"""New routes are created with their hosts, in the transaction of the chunk that wants them."""

from functools import partial

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.replicas.host_placement import MOST_AT_ONCE, Placing, Wanted
from db.replicas.secret_requests import note_fault
from domain.replicas.host_choice import hosts_by
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import HERE, make_deployment, read, write
from tests.support.rows.hosts import go_down, up
from tests.support.rows.sent_statements import sent_by
from tests.support.workers.coordinators import coordinator_without_redis, handler_for

EXTERNAL = {"runtime": "external", "external": {"task": "start", "queue": "theirs"}}


def hosts_of_new(engine: Engine) -> list[str | None]:
    return [row["host"] for row in read(engine, "SELECT host FROM routes WHERE rollout_id IS NOT NULL ORDER BY id")]


def test_a_new_route_has_the_host_that_is_up_and_has_the_fewest(engine: Engine) -> None:
    up(engine, "a", "b", HERE)
    go_down(engine, "a")
    make_deployment(engine, "■■■|", status=PROVISIONING)
    done = coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert hosts_of_new(engine) == ["b"]
    assert [sorted(done.applied.starting), sorted(done.applied.stopping)] == [["b"], [HERE]]


@pytest.mark.parametrize("silent", ["last_seen_at", "unasked_since"])
def test_a_host_that_is_silent_for_seconds_is_passed_over_while_another_is_heard(engine: Engine, silent: str) -> None:
    up(engine, "a", HERE)
    write(engine, f"UPDATE hosts SET {silent} = clock_timestamp() - interval '3 s' WHERE name = 'a'")
    make_deployment(engine, "■■■|", status=PROVISIONING)
    coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert hosts_of_new(engine) == [HERE], "the fewest are on a"


def test_what_the_same_decision_drains_counts_as_gone(engine: Engine) -> None:
    up(engine, HERE, "other")
    made = make_deployment(engine, "■■|", n=2, status=PROVISIONING)
    write(engine, "UPDATE routes SET host = 'other' WHERE id = %s", made.routes[0])
    coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert read(engine, "SELECT host FROM routes WHERE status = 'terminating'") == [{"host": "other"}]
    assert hosts_of_new(engine) == ["other"], "equal ones would have gone to the first by name"


def test_without_a_host_that_is_up_it_waits_for_one(engine: Engine) -> None:
    make_deployment(engine, "■■■|", status=PROVISIONING)
    done = coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert hosts_of_new(engine) == [None]
    assert (done.applied.starting, done.applied.unplaced) == (frozenset(), 1)


def test_what_another_system_runs_and_what_lacks_a_secret_have_their_places_too(engine: Engine) -> None:
    up(engine, "a", "b")
    in_transaction(engine, partial(note_fault, host="a", deployment="needs", reference="env:DB", fault="there is none"))
    make_deployment(engine, "■■|", name="theirs", status=PROVISIONING, spec=EXTERNAL)
    secret = {"command": ["serve"], "env": {"DB": {"secret": "env:DB"}}}
    make_deployment(engine, "■■|", name="needs", status=PROVISIONING, spec=secret)
    coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert set(hosts_of_new(engine)) == {"b", "external"}


def test_so_many_get_a_host_in_one_transaction_and_the_others_in_the_next(engine: Engine) -> None:
    up(engine, "a")
    made = make_deployment(engine, "■|", status=PROVISIONING)
    wanted = [Wanted(made.id, made.v2)] * (MOST_AT_ONCE + 2)
    assert hosts_by(in_transaction(engine, partial(Placing().grounds, replicas=wanted))) == ["a"] * MOST_AT_ONCE + [
        None,
        None,
    ]


def test_one_after_the_other_is_spread_and_the_fleet_is_counted_once(engine: Engine) -> None:
    up(engine, "a", "b")
    made = [make_deployment(engine, "", name=f"shop-{number}", n=0) for number in range(4)]
    placing, sent = Placing(), sent_by(engine)
    for each, expected in zip(made, "abab", strict=True):
        chosen = hosts_by(in_transaction(engine, partial(placing.grounds, replicas=[Wanted(each.id, each.v2)])))
        placing.add(chosen)
        assert chosen == [expected]
    assert sum("GROUP BY host" in statement for statement in sent) == 1
