"""`rollway hosts`: how far each host's clock is off, and which contract its worker knows."""

import json

import pytest
from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.replicas.heartbeats import show_sign_of_life
from domain.devices.needs import parse_resources
from domain.installation.contract import CONTRACT
from tests.cli.conftest import Rollway
from tests.support.rows.deployments import make_deployment, write
from tests.support.rows.hosts import go_deaf, says, up


@pytest.mark.usefixtures("servers")
def test_hosts_are_shown_with_their_clocks_and_their_contracts(rollway: Rollway, engine: Engine) -> None:
    offsets = {"ahead": 2.5, "behind": -7200.0, "right": 0.9}
    with transaction(engine) as connection:
        for host, offset in offsets.items():
            show_sign_of_life(connection, host, "10.0.0.1", offset)
    head, *rows = rollway("hosts").out.splitlines()
    assert head.split() == ["HOST", "ADDRESS", "LABELS", "DEVICES", "STATE", "SEEN", "CLOCK", "CONTRACT", "REPLICAS"]
    for row, clock in zip(rows, ("2.5 s ahead", "2 h behind", "right"), strict=True):
        assert " ".join(row.split()).endswith(f"ago {clock} {CONTRACT} none")
    told = json.loads(rollway("hosts", "--json").out)
    assert {host["name"]: host["clock_offset_seconds"] for host in told} == offsets
    assert {host["contract"] for host in told} == {CONTRACT}


@pytest.mark.usefixtures("servers")
def test_hosts_are_shown_with_their_labels_and_what_no_host_takes(rollway: Rollway, engine: Engine) -> None:
    up(engine, "east", "west")
    says(engine, "west", labels={"zone": "b", "disk": "ssd"})
    made = make_deployment(engine, "■◇", n=2, spec={"command": ["serve"], "hosts": {"zone": "a"}})
    write(engine, "UPDATE routes SET host = NULL, started_at = NULL WHERE id = %s", made.routes[1])
    _, east, west, last = rollway("hosts").out.splitlines()
    assert (east.split()[2], west.split()[2:4]) == ("-", ["disk=ssd,", "zone=b"])
    assert last == "web: 1 replica without a host: no host that is up has zone=a; zone is b."
    assert [host["labels"] for host in json.loads(rollway("hosts", "--json").out)] == [{}, {"disk": "ssd", "zone": "b"}]
    assert "no host that is up has zone=a; zone is b" in " ".join(rollway("status", "web").out.split())
    assert "no host that is up has zone=a; zone is b" in rollway("why", "web").out
    refused = rollway("restart", "web")
    assert refused.code == 1
    assert "hosts: no host can take v1.r2: no host has zone=a; zone is b; name labels that one host has" in refused.err


@pytest.mark.usefixtures("servers")
def test_a_device_that_is_used_by_no_replica_is_named(rollway: Rollway, engine: Engine) -> None:
    resources = parse_resources("gpu=u0+u1")
    says(engine, "gpu-2", resources=resources, memory_of_others={"gpu": {"u1": 11.2}})
    last = rollway("hosts").out.splitlines()[-1]
    assert last == "gpu-2 device u1: 11 GB used by no replica: nothing is started there."
    assert [host["memory_of_others"] for host in json.loads(rollway("hosts", "--json").out)] == [{"gpu": {"u1": 11.2}}]
    write(engine, "UPDATE hosts SET down_since = now()")
    assert [host["memory_of_others"] for host in json.loads(rollway("hosts", "--json").out)] == [{}]


@pytest.mark.usefixtures("servers")
def test_a_host_that_nobody_has_called_down_yet_is_silent_and_not_up(rollway: Rollway, engine: Engine) -> None:
    up(engine, "east", "west")
    write(engine, "UPDATE hosts SET last_seen_at = clock_timestamp() - interval '6 s' WHERE name = 'west'")
    said = {row.split()[0]: row for row in rollway("hosts").out.splitlines()[1:]}
    assert " up " in said["east"]
    assert " silent " in said["west"]
    assert json.loads(rollway("hosts", "--json").out)[1]["state"] == "silent"


@pytest.mark.usefixtures("servers")
def test_a_host_that_redis_does_not_answer_is_deaf(rollway: Rollway, engine: Engine) -> None:
    up(engine, "east", "west")
    go_deaf(engine, "west")
    said = {row.split()[0]: row for row in rollway("hosts").out.splitlines()[1:]}
    assert " up " in said["east"]
    assert " deaf for 0 s " in said["west"]
    assert [host["state"] for host in json.loads(rollway("hosts", "--json").out)] == ["up", "deaf"]
