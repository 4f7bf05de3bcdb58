"""Which hosts are prepared, how many at once, and what is known of each in Postgres."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.preparations import (
    OpenPreparation,
    begin_preparations,
    drop_preparation,
    end_preparation,
    open_preparations,
    preparations_of,
    take_preparation,
)
from db.replicas.host_routes import expected_on
from db.replicas.lost_hosts import forget_host
from domain.model.preparation import Preparation, PreparationState
from domain.model.states import PREPARING
from tests.support.rows.deployments import Made, make_deployment, read, write

SPEC: dict[str, Any] = {"command": ["serve"], "prepare": {"command": ["fetch"]}}


def preparing(engine: Engine, hosts: Sequence[str], spec: dict[str, Any] = SPEC) -> Made:
    for host in hosts:
        write(engine, "INSERT INTO hosts (name, address) VALUES (%s, '127.0.0.1')", host)
    made = make_deployment(engine, "■■■|", status=PREPARING, spec=spec)
    with transaction(engine) as connection:
        begin_preparations(connection, [made.id])
    return made


def the_open_one(engine: Engine, host: str) -> OpenPreparation:
    with transaction(engine) as connection:
        ((preparation,), _) = open_preparations(connection, host)
    return preparation


def take(engine: Engine, host: str) -> bool:
    preparation = the_open_one(engine, host)
    with transaction(engine) as connection:
        return take_preparation(connection, preparation)


def states(engine: Engine, made: Made) -> list[tuple[str, str]]:
    with transaction(engine) as connection:
        return [(each.host, each.state.value) for each in preparations_of(connection, [made.id]).get(made.id, ())]


def test_those_hosts_are_prepared_that_would_get_a_replica(engine: Engine) -> None:
    labelled = {**SPEC, "hosts": {"zone": "a"}}
    hosts = ("up", "down", "deaf", "drained", "elsewhere")
    for host in hosts:
        write(engine, "INSERT INTO hosts (name, address, labels) VALUES (%s, '', '{\"zone\": \"a\"}')", host)
    write(engine, "UPDATE hosts SET down_since = now() WHERE name = 'down'")
    write(engine, "UPDATE hosts SET deaf_since = now() WHERE name = 'deaf'")
    write(engine, "UPDATE hosts SET drained_at = now(), drained_by = 'ann' WHERE name = 'drained'")
    write(engine, "UPDATE hosts SET labels = '{}' WHERE name = 'elsewhere'")
    made = preparing(engine, (), labelled)
    assert states(engine, made) == [("up", "waiting")]


def test_two_hosts_are_at_it_at_once_and_one_that_is_down_takes_no_place(engine: Engine) -> None:
    preparing(engine, "abcd")
    assert [take(engine, host) for host in "abc"] == [True, True, False]
    write(engine, "UPDATE hosts SET down_since = now() WHERE name = 'a'")
    assert [take(engine, host) for host in "cd"] == [True, False]


def test_what_is_taken_is_not_taken_again(engine: Engine) -> None:
    preparing(engine, "a")
    preparation = the_open_one(engine, "a")
    with transaction(engine) as connection:
        assert [take_preparation(connection, preparation) for _ in range(2)] == [True, False]


@pytest.mark.parametrize(("state", "follows"), [("done", "done"), ("failed", "failed")])
def test_an_end_is_looked_at_and_is_kept_until_a_later_rollout(engine: Engine, state: str, follows: str) -> None:
    made = preparing(engine, "a")
    take(engine, "a")
    write(engine, "UPDATE deployments SET due_at = NULL")
    preparation = the_open_one(engine, "a")
    with transaction(engine) as connection:
        end_preparation(connection, preparation, PreparationState(state), "words")
        assert preparations_of(connection, [made.id])[made.id] == (Preparation("a", PreparationState(state), "words"),)
    assert read(engine, "SELECT due_at IS NOT NULL AS due FROM deployments") == [{"due": True}]
    with transaction(engine) as connection:
        begin_preparations(connection, [made.id])
    assert states(engine, made) == [("a", follows)]
    write(engine, "UPDATE rollouts SET started_at = clock_timestamp()")
    assert states(engine, made) == [("a", "waiting" if state == "failed" else "done")]
    with transaction(engine) as connection:
        begin_preparations(connection, [made.id])
    (row,) = read(engine, "SELECT id, state FROM preparations")
    assert (row["id"] == preparation.id) == (state == "done"), "another try is another command"


def test_nobody_wants_it_after_the_rollout_and_only_then_it_is_dropped(engine: Engine) -> None:
    preparing(engine, "a")
    assert the_open_one(engine, "a").is_wanted
    write(engine, "UPDATE deployments SET sub_step = 'rolling_back'")
    preparation = the_open_one(engine, "a")
    assert not preparation.is_wanted
    with transaction(engine) as connection:
        drop_preparation(connection, preparation)
        assert open_preparations(connection, "a") == ([], [])


def test_a_running_command_is_expected_on_its_host_alone(engine: Engine) -> None:
    preparing(engine, "ab")
    take(engine, "a")
    running, waiting = the_open_one(engine, "a").id, the_open_one(engine, "b").id
    with transaction(engine) as connection:
        assert expected_on(connection, "a", [running, waiting]) == {running: True, waiting: False}


def test_a_host_that_is_forgotten_is_no_longer_prepared(engine: Engine) -> None:
    preparing(engine, "ab")
    write(engine, "UPDATE hosts SET down_since = now() WHERE name = 'a'")
    with transaction(engine) as connection:
        forget_host(connection, "a")
    assert read(engine, "SELECT host FROM preparations") == [{"host": "b"}]
