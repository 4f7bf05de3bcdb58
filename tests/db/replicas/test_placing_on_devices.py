"""The choice of hosts with free devices: the devices of the first hosts are read, and the choice is that of all."""

import random
from dataclasses import replace

from psycopg.types.json import Jsonb
from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.devices import ledger_with_room, read_ledger
from db.replicas.host_placement import Placing, Wanted
from domain.devices.ledger import Demand
from domain.devices.needs import parse_resources
from domain.replicas.host_choice import placements
from tests.support.rows.deployments import ask, read, start_all, write
from tests.support.rows.hosts import has, says
from tests.support.rows.sent_statements import sent_by
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet

HOSTS, DEVICES = 24, 3
HOLD = """
    INSERT INTO routes (deployment_id, revision_id, host, status, traffic_status, devices)
    SELECT d.id, v.id, %s, 'provisioning', 'active', %s FROM deployments d JOIN revisions v ON v.deployment_id = d.id
     WHERE d.name = %s
"""


def wants(engine: Engine, name: str, count: int) -> list[Wanted]:
    (row,) = read(
        engine,
        "SELECT d.id, v.id AS revision FROM deployments d JOIN revisions v ON v.deployment_id = d.id WHERE d.name = %s",
        name,
    )
    return [Wanted(row["id"], row["revision"])] * count


def fleet(engine: Engine) -> None:
    for number in range(HOSTS):
        has(engine, f"h{number:02}", f"gpu={DEVICES}")
    for name in ("web", "other"):
        ask(engine, "create_deployment", deployment=name, desired_replicas=0)
        ask(engine, "add_revision", deployment=name, name="v1", spec={"command": ["serve"], "needs": {"gpu": 1}})
    write(engine, "UPDATE deployments SET desired_replicas = 100")


def fill(engine: Engine, chance: random.Random) -> None:
    """Each host has some of its devices taken, by one of the two deployments; others use one here and there."""
    write(engine, "DELETE FROM held_devices")
    write(engine, "DELETE FROM routes")
    for number in range(HOSTS):
        host, fullness = f"h{number:02}", chance.choice((0, 1, 2, 2, DEVICES))
        others = {"gpu": {"0": 9.0}} if not fullness and chance.random() < 0.3 else {}
        says(engine, host, resources=parse_resources(f"gpu={DEVICES}"), memory_of_others=others)
        for device in range(fullness):
            write(engine, HOLD, host, Jsonb({"gpu": {str(device): 1}}), chance.choice(("web", "other")))


def test_of_few_hosts_and_of_all_the_choice_is_the_same(engine: Engine) -> None:
    fleet(engine)
    few = 0
    for seed in range(15):
        fill(engine, random.Random(seed))
        for count in (1, 2, 5, 16, 30):
            with transaction(engine) as connection:
                grounds = Placing().grounds(connection, wants(engine, "web", count))
                of_all = replace(grounds, ledger=read_ledger(connection))
            few += len(grounds.ledger.capacity) < HOSTS
            assert placements(grounds) == placements(of_all), (seed, count)
    assert few > 15, "mostly all were read"


def test_of_few_hosts_and_of_all_the_room_is_the_same_as_far_as_it_is_needed(engine: Engine) -> None:
    fleet(engine)
    few = 0
    for seed in range(15):
        fill(engine, random.Random(seed))
        for demand in (Demand({"gpu": 1}), Demand({"gpu": 0.5}), Demand({"gpu": 2}, ["h01", "h02", "h03"])):
            for count in (1, 4, 12, 30):
                with transaction(engine) as connection:
                    ledger, of_all = ledger_with_room(connection, [(demand, count)]), read_ledger(connection)
                few += len(ledger.capacity) < HOSTS
                assert min(ledger.room(demand), count) == min(of_all.room(demand), count), (seed, demand, count)
    assert few > 60, "mostly all were read"


def test_a_cycle_that_finds_room_does_not_read_who_holds_what(engine: Engine) -> None:
    fleet(engine)
    write(engine, "UPDATE deployments SET desired_replicas = 0")
    ask(engine, "activate_revision", deployment="web", revision="v1")
    run_until_quiet(coordinator_without_redis(engine))
    seen = []
    for size in (2, 50, HOSTS * DEVICES):
        ask(engine, "scale", deployment="web", desired_replicas=size)
        sent = sent_by(engine)
        run_until_quiet(coordinator_without_redis(engine))
        seen.append(any("held_devices x JOIN" in str(query) for query in sent))
        start_all(engine)
    assert seen == [False, True, True]
    assert len(read(engine, "SELECT FROM held_devices")) == HOSTS * DEVICES


def test_one_replica_asks_for_the_devices_of_two_hosts(engine: Engine) -> None:
    fleet(engine)
    wanted = wants(engine, "web", 1)
    sent = sent_by(engine)
    with transaction(engine) as connection:
        grounds = Placing().grounds(connection, wanted)
    assert len(grounds.ledger.capacity) == 2
    assert [query for query in sent if "held_devices" in str(query) and "ANY" not in str(query)] == []
