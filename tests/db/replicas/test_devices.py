"""Devices in Postgres: who owns which, rollouts in place, two deployments at one device, lost hosts, and refusals."""

import threading
from collections import Counter
from functools import partial

import psycopg
import pytest
from sqlalchemy import Engine

from cli.commands.fleet.host_commands import devices_in_words
from db.connection.transactions import in_transaction
from db.replicas.host_routes import record_stopped
from db.replicas.lost_hosts import fail_routes_of_lost_hosts, forget_host
from db.views.fleet_views import all_hosts
from domain.devices.needs import parse_resources
from domain.model.states import RouteStatus
from domain.steering.device_check import NoDevicesError
from tasks.hosts.heartbeat import Heartbeat
from tests.support.people.soak_report import leave, size
from tests.support.rows.databases import engine_on
from tests.support.rows.deployments import ask, become, read, start_all, write
from tests.support.rows.hosts import drain, go_down, has, says, up
from tests.support.workers.coordinators import assert_nothing_happened_twice, coordinator_without_redis, run_until_quiet

IN_PLACE = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 1}}
SURGE_ALONE = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 0}}
TWO_OWNERS = """
    SELECT x.host, x.kind, x.device, sum(x.amount) AS held FROM held_devices x
     WHERE x.free_at IS NULL GROUP BY x.host, x.kind, x.device HAVING sum(x.amount) > 1 AND x.device <> ''
"""
OWNERS = """
    SELECT d.name FROM held_devices x JOIN routes r ON r.id = x.route_id JOIN deployments d ON d.id = r.deployment_id
     WHERE x.free_at IS NULL
"""
HELD = """
    SELECT x.host || ' ' || x.kind || x.device AS device FROM held_devices x JOIN routes r ON r.id = x.route_id
     WHERE x.free_at IS NULL ORDER BY 1
"""


def revision(engine: Engine, deployment: str, name: str, **spec: object) -> None:
    content = {"command": ["serve", name], "needs": {"gpu": 1}, "release_seconds": 0, **spec}
    ask(engine, "add_revision", deployment=deployment, name=name, spec=content)


def deploy(engine: Engine, name: str, n: int, policy: object = IN_PLACE, **spec: object) -> None:
    """`name` serves with n replicas of v1, and knows v2, which needs the same."""
    ask(engine, "create_deployment", deployment=name, desired_replicas=n, policy=policy)
    for number in (1, 2):
        revision(engine, name, f"v{number}", **spec)
    ask(engine, "activate_revision", deployment=name, revision="v1")
    live(engine)


def stop_all(engine: Engine) -> None:
    """The world: whatever must end is gone."""
    query = "SELECT id FROM routes WHERE status IN ('terminating', 'failed') AND stopped_at IS NULL"
    in_transaction(engine, partial(record_stopped, route_ids=[row["id"] for row in read(engine, query)]))


def live(engine: Engine, times: int = 1) -> None:
    """Workers decide, what was drained ends, and what was created comes up."""
    for _ in range(times):
        run_until_quiet(coordinator_without_redis(engine))
        stop_all(engine)
        start_all(engine)
        write(engine, "UPDATE deployments SET due_at = clock_timestamp()")
    run_until_quiet(coordinator_without_redis(engine))


def held(engine: Engine) -> list[str]:
    return [row["device"] for row in read(engine, HELD)]


def serving(engine: Engine, name: str = "web") -> dict[str, int]:
    query = """
        SELECT v.name, count(*)::int AS count FROM routes r JOIN revisions v ON v.id = r.revision_id
          JOIN deployments d ON d.id = r.deployment_id
         WHERE r.status = 'healthy' AND r.traffic_status = 'active' AND d.name = %s GROUP BY v.name
    """
    return {row["name"]: row["count"] for row in read(engine, query, name)}


def why(engine: Engine, name: str = "web") -> str:
    (row,) = read(engine, "SELECT reason FROM deployments WHERE name = %s", name)
    return str(row["reason"])


def test_each_replica_owns_a_device_until_it_is_gone(engine: Engine) -> None:
    has(engine, "a", "gpu=2")
    has(engine, "b", "gpu=2")
    deploy(engine, "web", 4)
    assert held(engine) == ["a gpu0", "a gpu1", "b gpu0", "b gpu1"]
    assert serving(engine) == {"v1": 4}
    ask(engine, "scale", deployment="web", desired_replicas=3)
    run_until_quiet(coordinator_without_redis(engine))
    assert len(held(engine)) == 4
    stop_all(engine)
    assert len(held(engine)) == 3


def test_people_see_who_holds_what(engine: Engine) -> None:
    has(engine, "a", "gpu=3,memory_gb=100")
    deploy(engine, "web", 2, needs={"gpu": 1, "memory_gb": 40})
    (host,) = in_transaction(engine, all_hosts)
    seen = [(each.kind, each.device, each.amount, each.deployment, each.status) for each in host.held]
    assert seen == [
        *[("gpu", device, 1, "web", "healthy") for device in ("0", "1")],
        *[("memory_gb", "", 40, "web", "healthy")] * 2,
    ]
    assert devices_in_words(host) == "gpu 2 of 3, memory_gb 80 of 100"


def test_a_rollout_goes_in_place_where_every_device_is_taken(engine: Engine) -> None:
    has(engine, "a", "gpu=2")
    has(engine, "b", "gpu=2")
    deploy(engine, "web", 4)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    least = 4
    for _ in range(20):
        run_until_quiet(coordinator_without_redis(engine))
        least = min(least, sum(serving(engine).values()))
        assert read(engine, TWO_OWNERS) == []
        live(engine)
    assert (serving(engine), least, len(held(engine))) == ({"v2": 4}, 3, 4)
    assert_nothing_happened_twice(engine)


def test_a_wait_names_the_devices_that_it_waits_for(engine: Engine) -> None:
    has(engine, "a", "gpu=2")
    deploy(engine, "web", 2)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    run_until_quiet(coordinator_without_redis(engine))
    write(engine, "UPDATE deployments SET due_at = clock_timestamp()")
    run_until_quiet(coordinator_without_redis(engine))
    assert "2 of 2" in why(engine)
    assert "1 is stopping on a for" in why(engine)


def test_one_that_could_never_move_is_refused_with_the_way_out(engine: Engine) -> None:
    has(engine, "a", "gpu=2")
    deploy(engine, "web", 2, SURGE_ALONE)
    with pytest.raises(NoDevicesError, match=r"a new replica needs a GPU: 2 of 2 in use.*max_unavailable: 1"):
        ask(engine, "activate_revision", deployment="web", revision="v2")
    has(engine, "b", "gpu=1")
    ask(engine, "activate_revision", deployment="web", revision="v2")
    live(engine, 8)
    assert serving(engine) == {"v2": 2}


def test_what_no_host_could_ever_run_is_refused(engine: Engine) -> None:
    has(engine, "a", "gpu=2,memory_gb=100")
    ask(engine, "create_deployment", deployment="web", desired_replicas=3, policy=IN_PLACE)
    revision(engine, "web", "many")
    revision(engine, "web", "large", needs={"gpu": 1, "memory_gb": 60})
    with pytest.raises(NoDevicesError, match="each replica needs a GPU, and all hosts have room for 2 of 3"):
        ask(engine, "activate_revision", deployment="web", revision="many")
    with pytest.raises(NoDevicesError, match="a GPU and 60 of memory_gb, and all hosts have room for 1 of 3"):
        ask(engine, "activate_revision", deployment="web", revision="large")


def test_blue_green_is_refused_without_room_for_the_second_set(engine: Engine) -> None:
    has(engine, "a", "gpu=3")
    deploy(engine, "web", 2, {"strategy": "blue_green"})
    with pytest.raises(NoDevicesError, match=r"blue_green runs 2 new replicas next to the old ones.*room for 1"):
        ask(engine, "activate_revision", deployment="web", revision="v2")


def test_a_single_replica_on_a_single_device_goes_before_the_next_one_comes(engine: Engine) -> None:
    has(engine, "a", "gpu=1")
    deploy(engine, "web", 1)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    live(engine, 4)
    assert (serving(engine), held(engine)) == ({"v2": 1}, ["a gpu0"])


def test_halves_share_a_device_and_memory_is_an_amount(engine: Engine) -> None:
    has(engine, "a", "gpu=2,memory_gb=10")
    deploy(engine, "web", 3, needs={"gpu": 0.5, "memory_gb": 3})
    assert sorted(held(engine)) == ["a gpu0", "a gpu0", "a gpu1", *["a memory_gb"] * 3]
    ask(engine, "scale", deployment="web", desired_replicas=4)
    live(engine, 3)
    assert serving(engine) == {"v1": 3}
    assert "3 of memory_gb: 9 of 10 in use" in why(engine)


def test_the_devices_of_one_that_has_gone_are_given_away_after_its_release(engine: Engine) -> None:
    has(engine, "a", "gpu=1")
    deploy(engine, "web", 1, release_seconds=3600)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    live(engine, 4)
    assert serving(engine) == {}
    assert "another has just gone" in why(engine)
    write(engine, "UPDATE held_devices SET free_at = clock_timestamp()")
    live(engine, 3)
    assert serving(engine) == {"v2": 1}


def test_postgres_refuses_a_second_owner(engine: Engine) -> None:
    has(engine, "a", "gpu=1")
    deploy(engine, "web", 1)
    other = "INSERT INTO routes (deployment_id, revision_id, host, status, traffic_status, devices)"
    same = "SELECT deployment_id, revision_id, host, 'provisioning', 'active', devices FROM routes LIMIT 1"
    write(engine, "UPDATE deployments SET desired_replicas = 5")
    with pytest.raises(psycopg.errors.CheckViolation, match=r"device gpu 0 of host a: 2 held of 1"):
        write(engine, f"{other} {same}")


def test_two_deployments_at_one_device_never_both_own_it(engine: Engine, database: str) -> None:
    has(engine, "a", "gpu=1")
    for name in ("left", "right"):
        deploy(engine, name, 0)
    engines = [engine_on(database) for _ in range(4)]
    coordinators = [coordinator_without_redis(each, chunk=1) for each in engines]  # else one claims both
    wins = Counter[str]()
    for _ in range(size("devices", quick=30)):
        for wanted in (1, 0):
            for name in ("left", "right"):
                ask(engine, "scale", deployment=name, desired_replicas=wanted)
            threads = [threading.Thread(target=run_until_quiet, args=(each,)) for each in coordinators]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert [thread for thread in threads if thread.is_alive()] == []
            assert held(engine) == ["a gpu0"]
            wins.update(row["name"] for row in read(engine, OWNERS) if wanted)
            stop_all(engine)
            start_all(engine)
        assert held(engine) == []
    assert_nothing_happened_twice(engine)
    leave("devices", checks=sum(wins.values()), wins=wins)
    for each in engines:
        each.dispose()


def test_nothing_starts_on_a_device_whose_memory_somebody_else_uses(engine: Engine) -> None:
    """One host, four devices by the names of their driver; on the last one runs a program that is no replica's."""
    in_use = {"gpu": {"u0": 70.0, "u1": 0.0, "u2": 0.2, "u3": 11.2}}
    resources = parse_resources("gpu=u0+u1+u2+u3")
    beat = Heartbeat(engine, "a", "127.0.0.1", resources=resources, memory_in_use=lambda: in_use)
    beat.show()
    in_use["gpu"]["u0"] = 0.0
    beat.show()
    deploy(engine, "web", 3)
    assert held(engine) == ["a gpuu0", "a gpuu1", "a gpuu2"]
    in_use["gpu"] |= dict.fromkeys(("u0", "u1", "u2"), 70.0)
    beat.show()
    (host,) = in_transaction(engine, all_hosts)
    assert host.memory_of_others == {"gpu": {"u3": 11.2}}
    ask(engine, "scale", deployment="web", desired_replicas=4)
    live(engine, 2)
    assert (serving(engine), len(held(engine))) == ({"v1": 3}, 3)
    assert "a GPU: 3 of 4 in use, a device u3: 11 GB used by no replica" in why(engine)
    in_use["gpu"]["u3"] = 0.0
    beat.show()
    live(engine, 2)
    assert (serving(engine), len(held(engine))) == ({"v1": 4}, 4)


def test_memory_of_a_device_is_its_replicas_until_its_release_is_over(engine: Engine) -> None:
    beat = Heartbeat(
        engine, "a", "127.0.0.1", resources=parse_resources("gpu=u0"), memory_in_use=lambda: {"gpu": {"u0": 70.0}}
    )
    says(engine, "a", resources=parse_resources("gpu=u0"))
    deploy(engine, "web", 1, release_seconds=3600)
    seen = []
    for step in ("serves", "is gone", "its release is over"):
        if step == "is gone":
            ask(engine, "scale", deployment="web", desired_replicas=0)
            live(engine, 2)
        elif step == "its release is over":
            write(engine, "UPDATE held_devices SET free_at = clock_timestamp()")
        beat.show()
        seen.append(in_transaction(engine, all_hosts)[0].memory_of_others)
    assert seen == [{}, {}, {"gpu": {"u0": 70.0}}]


def test_one_that_ignores_sigterm_keeps_its_device(engine: Engine) -> None:
    has(engine, "a", "gpu=1")
    deploy(engine, "web", 1)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    for _ in range(5):
        run_until_quiet(coordinator_without_redis(engine))
        start_all(engine)
        write(engine, "UPDATE deployments SET due_at = clock_timestamp()")
    assert serving(engine) == {}
    live(engine, 3)
    assert serving(engine) == {"v2": 1}


def test_the_replicas_of_a_lost_host_start_elsewhere_and_its_devices_stay_taken(engine: Engine) -> None:
    has(engine, "a", "gpu=2")
    deploy(engine, "web", 2)
    has(engine, "b", "gpu=1")
    go_down(engine, "a")
    up(engine, "b")
    in_transaction(engine, partial(fail_routes_of_lost_hosts, limit=None))
    run_until_quiet(coordinator_without_redis(engine))
    start_all(engine)
    assert held(engine) == ["a gpu0", "a gpu1", "b gpu0"]
    assert serving(engine) == {"v1": 1}
    in_transaction(engine, partial(forget_host, name="a"))
    assert held(engine) == ["b gpu0"]


def test_a_drained_host_keeps_what_no_other_host_has_a_device_for(engine: Engine) -> None:
    has(engine, "a", "gpu=2")
    deploy(engine, "web", 2)
    has(engine, "b", "gpu=1")
    drain(engine, "a")
    live(engine, 6)
    assert (serving(engine), held(engine)) == ({"v1": 2}, ["a gpu1", "b gpu0"])
    has(engine, "b", "gpu=2")
    live(engine, 6)
    assert held(engine) == ["b gpu0", "b gpu1"]


def test_a_sick_replica_makes_room_for_the_one_that_replaces_it(engine: Engine) -> None:
    has(engine, "a", "gpu=2")
    deploy(engine, "web", 2)
    (sick, _) = read(engine, "SELECT id FROM routes ORDER BY id")
    become(engine, RouteStatus.UNHEALTHY, sick["id"])
    write(engine, "UPDATE routes SET status_changed_at = now() - interval '1 hour' WHERE id = %s", sick["id"])
    live(engine, 4)
    assert serving(engine) == {"v1": 2}


def test_labels_and_devices_hold_together(engine: Engine) -> None:
    has(engine, "a", "gpu=2")
    has(engine, "b", "gpu=2")
    says(engine, "b", labels={"zone": "b"})
    deploy(engine, "web", 2, hosts={"zone": "b"})
    assert held(engine) == ["b gpu0", "b gpu1"]
    ask(engine, "scale", deployment="web", desired_replicas=3)
    live(engine, 2)
    assert "2 of 2 in use" in why(engine)


def test_the_fewest_leave_for_one_that_needs_more(engine: Engine) -> None:
    has(engine, "a", "gpu=2")
    has(engine, "b", "gpu=3")
    deploy(engine, "other", 1, needs={"gpu": 2}, hosts={"host": "b"})
    deploy(engine, "web", 3)
    revision(engine, "web", "v3", needs={"gpu": 2})
    policy = {"strategy": "rolling_update", "spec": {"max_surge": 0, "max_unavailable": 2}}
    ask(engine, "set_policy", deployment="web", policy=policy)
    ask(engine, "scale", deployment="web", desired_replicas=1)
    live(engine, 3)
    ask(engine, "activate_revision", deployment="web", revision="v3")
    live(engine, 6)
    assert serving(engine) == {"v3": 1}
