"""Worker hosts in Postgres: replicas are placed, a silent host loses them, one that is back is welcome."""

import re
from functools import partial
from uuid import UUID

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction, transaction
from db.replicas.heartbeats import HostsTurned
from db.replicas.host_placement import hosts_with_work, place_routes
from db.replicas.lost_hosts import fail_routes_of_lost_hosts, fail_routes_that_wait_in_vain, forget_host
from domain.model.lifecycle_events import RouteLifecycleType
from domain.replicas.host_choice import EXTERNAL, HostNotFoundError
from domain.text.errors import WrongStateError
from tests.support.pictures.pictures import PROVISIONING, SCALING
from tests.support.rows.deployments import HERE, drawn, make_deployment, read, write
from tests.support.rows.hosts import LOOKS, deaf, go_deaf, go_down, look, says, silent, turned, up

NONE = frozenset[str]()


def place(engine: Engine) -> int:
    return in_transaction(engine, lambda connection: place_routes(connection, 100))


def hosts_of(engine: Engine, *route_ids: UUID) -> list[str | None]:
    rows = read(engine, "SELECT host FROM routes WHERE id = ANY(%s) ORDER BY id", list(route_ids))
    return [row["host"] for row in rows]


def unplaced(engine: Engine, picture: str) -> tuple[UUID, ...]:
    made = make_deployment(engine, picture, n=len(picture), status=SCALING)
    write(engine, "UPDATE routes SET host = NULL WHERE deployment_id = %s", made.id)
    return made.routes


def test_new_replicas_go_to_the_hosts_that_are_up_and_have_the_fewest(engine: Engine) -> None:
    up(engine, "a", "b", "c")
    go_down(engine, "c")
    routes = unplaced(engine, "◇◇◇◇")
    assert place(engine) == 4
    assert sorted(map(str, hosts_of(engine, *routes))) == ["a", "a", "b", "b"]
    assert place(engine) == 0


def test_a_replica_waits_until_a_host_is_up(engine: Engine) -> None:
    (route,) = unplaced(engine, "◇")
    assert (place(engine), hosts_of(engine, route)) == (0, [None])
    up(engine, "a")
    assert (place(engine), hosts_of(engine, route)) == (1, ["a"])


def test_a_worker_that_is_cut_off_within_its_sign_of_life_holds_up_no_look(engine: Engine) -> None:
    up(engine, "a", "b")
    for name in ("a", "b"):
        silent(engine, name)
    with transaction(engine) as cut_off:
        cut_off.execute("UPDATE hosts SET last_seen_at = clock_timestamp() WHERE name = 'a'")
        for _ in range(LOOKS - 1):
            turned(engine)
        assert turned(engine).down == {"b"}


def test_only_hosts_with_work_are_asked(engine: Engine) -> None:
    up(engine, HERE, "idle")
    make_deployment(engine, "◇■", n=2, status=SCALING)

    def asked(kind: RouteLifecycleType) -> list[str]:
        found = in_transaction(engine, lambda connection: hosts_with_work(connection, [kind]))
        return sorted(host for _, host in found)

    assert asked(RouteLifecycleType.START) == [HERE]
    assert asked(RouteLifecycleType.PROBE) == [HERE]
    assert asked(RouteLifecycleType.STOP) == []
    assert asked(RouteLifecycleType.SWEEP) == [HERE, "idle"]
    write(engine, "UPDATE routes SET host = %s", EXTERNAL)
    assert asked(RouteLifecycleType.START) == [EXTERNAL]


def test_a_host_is_down_after_so_many_looks_in_silence_and_not_before(engine: Engine) -> None:
    up(engine, "a")
    silent(engine, "a")
    assert [look(engine) for _ in range(LOOKS)] == [([], [])] * (LOOKS - 1) + [(["a"], [])]
    assert look(engine) == ([], []), "it is told once"


def test_an_hour_in_which_nobody_looked_makes_no_host_silent(engine: Engine) -> None:
    up(engine, "a", "b")
    silent(engine, "a")
    silent(engine, "b")
    assert look(engine) == ([], [])
    up(engine, "a", "b")
    for _ in range(LOOKS + 1):
        assert look(engine) == ([], [])


def test_what_a_lost_host_ran_fails_without_blame_and_is_wanted_elsewhere(engine: Engine) -> None:
    up(engine, HERE)
    made = make_deployment(engine, "■■|■◇", n=3, status=PROVISIONING)
    go_down(engine, HERE)
    assert in_transaction(engine, lambda connection: fail_routes_of_lost_hosts(connection, 10)) == {made.id}
    assert in_transaction(engine, lambda connection: fail_routes_of_lost_hosts(connection, 10)) == frozenset()
    rows = read(engine, "SELECT status, traffic_status, status_reason, stopped_at FROM routes")
    assert {(row["status"], row["traffic_status"], row["stopped_at"]) for row in rows} == {("failed", "inactive", None)}
    assert "its host here has been silent for 3" in rows[0]["status_reason"]
    (deployment,) = read(engine, "SELECT failed_starts, due_at <= clock_timestamp() AS due FROM deployments")
    assert (deployment["failed_starts"], deployment["due"]) == (0, True)
    assert read(engine, "SELECT failed_routes FROM rollouts") == [{"failed_routes": 0}]


def test_a_host_that_is_back_is_told_once_and_gets_replicas_again(engine: Engine) -> None:
    up(engine, "a")
    go_down(engine, "a")
    up(engine, "a")
    assert look(engine) == ([], ["a"])
    assert look(engine) == ([], [])
    routes = unplaced(engine, "◇")
    place(engine)
    assert hosts_of(engine, *routes) == ["a"]


def test_a_host_that_never_comes_back_is_forgotten_with_its_replicas(engine: Engine) -> None:
    up(engine, HERE)
    make_deployment(engine, "■◇", n=2)
    with pytest.raises(WrongStateError, match="host here is up"):
        in_transaction(engine, lambda connection: forget_host(connection, HERE))
    go_down(engine, HERE)
    in_transaction(engine, lambda connection: forget_host(connection, HERE))
    assert read(engine, "SELECT name FROM hosts") == []
    assert {row["status"] for row in read(engine, "SELECT status FROM routes WHERE stopped_at IS NOT NULL")} == {
        "failed"
    }
    with pytest.raises(HostNotFoundError, match="there is no host nowhere"):
        in_transaction(engine, lambda connection: forget_host(connection, "nowhere"))


def test_a_host_is_deaf_after_so_many_looks_gets_nothing_new_and_is_asked_again_when_redis_answers(
    engine: Engine,
) -> None:
    up(engine, "a", "b")
    deaf(engine, "a")
    assert [turned(engine).deaf for _ in range(LOOKS + 1)] == [NONE] * (LOOKS - 1) + [{"a"}, NONE]
    routes = unplaced(engine, "◇◇")
    place(engine)
    assert hosts_of(engine, *routes) == ["b", "b"]
    says(engine, "a", is_deaf=False)
    assert turned(engine) == HostsTurned(NONE, NONE, NONE, frozenset({"a"}))
    write(engine, "UPDATE routes SET host = NULL")
    place(engine)
    assert sorted(map(str, hosts_of(engine, *routes))) == ["a", "b"]


def test_where_all_hosts_are_deaf_they_get_replicas_as_usual(engine: Engine) -> None:
    """Redis was away, and who looks first now is no better than the others."""
    up(engine, "a", "b")
    go_deaf(engine, "a", "b")
    routes = unplaced(engine, "◇◇")
    place(engine)
    assert sorted(map(str, hosts_of(engine, *routes))) == ["a", "b"]


def test_one_worker_of_a_host_that_redis_answers_is_enough(engine: Engine) -> None:
    up(engine, "a")
    deaf(engine, "a")
    for _ in range(LOOKS):
        says(engine, "a", is_deaf=False)
        says(engine, "a", is_deaf=True)
        assert turned(engine).deaf == set()


def test_what_was_never_healthy_on_a_deaf_host_is_wanted_elsewhere_and_what_was_goes_on(engine: Engine) -> None:
    up(engine, HERE)
    made = make_deployment(engine, "■■|■◇◇", n=4, status=PROVISIONING)
    write(engine, "UPDATE routes SET healthy_at = now() WHERE status = 'healthy'")
    go_deaf(engine, HERE)

    def failed() -> frozenset[UUID]:
        return in_transaction(engine, partial(fail_routes_that_wait_in_vain, limit=10))

    assert failed() == NONE, "there is no other host"
    up(engine, "b")
    assert failed() == {made.id}
    assert drawn(engine, made.id).replace("✗", "") == "■■|■"
    (reason,) = read(engine, "SELECT DISTINCT status_reason FROM routes WHERE status = 'failed'")
    assert re.fullmatch(r"its host here has not been answered by Redis for 36\d\d s", reason["status_reason"])
    assert read(engine, "SELECT failed_routes FROM rollouts") == [{"failed_routes": 0}]


def test_two_placers_at_once_place_nothing_twice(engine: Engine) -> None:
    up(engine, "a", "b")
    routes = unplaced(engine, "◇◇")
    with transaction(engine) as first:
        assert place_routes(first, 10) == 2
    with transaction(engine) as second:
        assert place_routes(second, 10) == 0
    assert sorted(map(str, hosts_of(engine, *routes))) == ["a", "b"]
