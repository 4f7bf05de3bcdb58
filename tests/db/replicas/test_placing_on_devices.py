"""The choice of hosts with free devices: the devices of the first hosts are read, and the choice is that of all."""

import random
from dataclasses import replace

from psycopg.types.json import Jsonb
from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.devices import read_ledger
from db.replicas.host_placement import Placing, Wanted
from domain.devices.needs import parse_resources
from domain.replicas.host_choice import placements
from tests.support.rows.deployments import ask, read, write
from tests.support.rows.hosts import has, says
from tests.support.rows.sent_statements import sent_by

HOSTS, DEVICES = 20, 3
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
        host, fullness = f"h{number:02}", chance.choice((0, 1, 2, DEVICES, DEVICES))
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


def test_one_replica_asks_for_the_devices_of_two_hosts(engine: Engine) -> None:
    fleet(engine)
    wanted = wants(engine, "web", 1)
    sent = sent_by(engine)
    with transaction(engine) as connection:
        grounds = Placing().grounds(connection, wanted)
    assert len(grounds.ledger.capacity) == 2
    assert [query for query in sent if "held_devices" in str(query) and "ANY" not in str(query)] == []
