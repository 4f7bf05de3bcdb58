"""A drained host in Postgres: what runs there is replaced on others, and stays where no other takes it."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.cycle.claim import mark_what_is_off
from db.replicas.host_routes import record_stopped
from db.replicas.secret_requests import note_fault
from db.views.fleet_views import HostView, all_hosts
from domain.replicas.host_choice import EXTERNAL, HostNotFoundError
from tests.support.pictures.pictures import PROVISIONING, READY
from tests.support.pictures.policies import RECREATE
from tests.support.rows.deployments import (
    EMPTIED,
    HERE,
    ROLLING,
    Made,
    ask,
    drawn,
    make_deployment,
    read,
    snapshot,
    start_all,
    write,
)
from tests.support.rows.hosts import drain, go_deaf, go_down, up
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet

ROOMLESS = {"strategy": "rolling_update", "spec": {"max_surge": 0, "max_unavailable": 1}}
DIES = "UPDATE routes SET status = 'failed', traffic_status = 'inactive', stopped_at = now() WHERE id = %s"
SECRET = {"command": ["serve"], "env": {"DB": {"secret": "env:DB"}}}


@pytest.fixture(autouse=True)
def two_hosts(engine: Engine) -> None:
    up(engine, HERE, EMPTIED)


def works_on(engine: Engine, made: Made) -> list[str]:
    """Cycles and starts until nothing moves any more; what was seen meanwhile, each picture once."""
    coordinator, seen = coordinator_without_redis(engine), list[str]()
    in_transaction(engine, partial(mark_what_is_off, targets=[READY]))
    while run_until_quiet(coordinator):
        seen += [picture for picture in [drawn(engine, made.id)] if picture not in seen[-1:]]
        leaving = [row["id"] for row in read(engine, "SELECT id FROM routes WHERE status = 'terminating'")]
        in_transaction(engine, partial(record_stopped, route_ids=leaving))
        start_all(engine)
    return seen


def places(engine: Engine) -> list[str]:
    rows = read(engine, "SELECT host FROM routes WHERE status NOT IN ('terminating', 'terminated', 'failed')")
    return sorted(row["host"] for row in rows)


def shown(engine: Engine, name: str = EMPTIED) -> HostView:
    (host,) = [host for host in in_transaction(engine, all_hosts) if host.name == name]
    return host


@pytest.mark.parametrize(
    ("policy", "seen"),
    [
        (ROLLING, ["■■■◇", "■■■"]),
        (ROOMLESS, ["■■◇", "■■■"]),
        (RECREATE, ["■■", "■■◇", "■■■"]),
    ],
)
def test_its_replicas_are_replaced_one_by_one_and_then_it_is_empty(
    engine: Engine, policy: Mapping[str, Any], seen: list[str]
) -> None:
    made = make_deployment(engine, "▣■▣", policy=policy)
    assert drain(engine, EMPTIED).result == {"host": EMPTIED, "deployments": 1, "stay": []}
    assert shown(engine).stays == {"web": ""}
    assert set(works_on(engine, made)) == set(seen)
    assert (places(engine), snapshot(engine, made.id).status) == ([HERE] * 3, READY)
    host = shown(engine)
    assert (host.state, host.drained_by, host.stays) == ("up", "ops", {})
    assert host.drained_at is not None


def test_only_while_a_host_is_drained_may_one_less_serve_where_there_is_no_room(engine: Engine) -> None:
    made = make_deployment(engine, "▣■■", policy=ROOMLESS)
    drained = (
        "UPDATE routes SET status = 'terminating', traffic_status = 'inactive', drain_started_at = now() WHERE id = %s"
    )
    with pytest.raises(psycopg.errors.Error, match="2 healthy replicas in traffic are fewer than the 3 to keep"):
        write(engine, drained, made.routes[0])
    drain(engine, EMPTIED)
    write(engine, drained, made.routes[0])
    with pytest.raises(psycopg.errors.Error, match="1 healthy replicas in traffic are fewer than the 2 to keep"):
        write(engine, drained, made.routes[1])


def test_what_no_other_host_takes_stays_and_is_named_until_one_does(engine: Engine) -> None:
    go_down(engine, HERE)
    made = make_deployment(engine, "▣▣▣")
    assert drain(engine, EMPTIED).result["stay"] == ["web"]
    assert works_on(engine, made) == ["■■■"]
    assert (places(engine), shown(engine).stays) == ([EMPTIED] * 3, {"web": "another host takes it"})
    write(engine, DIES, made.routes[0])
    works_on(engine, made)
    assert places(engine) == [EMPTIED] * 3, "where nobody else is, what dies is made there"
    up(engine, HERE)
    write(engine, "UPDATE hosts SET down_since = NULL, silent_looks = 0")
    works_on(engine, made)
    assert places(engine) == [HERE] * 3


@pytest.mark.parametrize("other", ["deaf", "drained", "lacking"])
def test_a_host_that_is_deaf_drained_or_lacks_a_secret_takes_nothing(engine: Engine, other: str) -> None:
    made = make_deployment(engine, "▣▣▣", spec=SECRET)
    match other:
        case "deaf":
            go_deaf(engine, HERE)
        case "drained":
            drain(engine, HERE)
        case _:
            note = partial(note_fault, deployment="web", reference="env:DB", fault="there is none")
            in_transaction(engine, partial(note, host=HERE))
    assert drain(engine, EMPTIED).result["stay"] == ["web"]
    assert works_on(engine, made) == ["■■■"]
    write(engine, DIES, made.routes[0])
    works_on(engine, made)
    assert places(engine).count(EMPTIED) >= 2
    assert (other == "drained") or places(engine) == [EMPTIED] * 3


def test_new_replicas_go_elsewhere_and_a_rollout_goes_on(engine: Engine) -> None:
    made = make_deployment(engine, "▣■▣|", status=PROVISIONING)
    drain(engine, EMPTIED)
    assert shown(engine).stays == {"web": "its rollout has room for it"}
    works_on(engine, made)
    assert places(engine) == [HERE] * 3
    assert read(engine, "SELECT outcome, failed_routes FROM rollouts") == [{"outcome": "completed", "failed_routes": 0}]


def test_a_rollout_that_is_paused_has_its_old_replicas_moved(engine: Engine) -> None:
    made = make_deployment(engine, "▣■|■", status=PROVISIONING)
    ask(engine, "pause", deployment="web")
    drain(engine, EMPTIED)
    works_on(engine, made)
    assert (places(engine), drawn(engine, made.id)) == ([HERE] * 3, "■■|■")


def test_undrained_it_gets_new_ones_again_and_nothing_moves_back(engine: Engine) -> None:
    made = make_deployment(engine, "▣■■")
    drain(engine, EMPTIED)
    works_on(engine, made)
    ask(engine, "undrain_host", host=EMPTIED)
    assert (shown(engine).drained_at, shown(engine).drained_by) == (None, None)
    assert works_on(engine, made) == []
    ask(engine, "scale", deployment="web", desired_replicas=4)
    works_on(engine, made)
    assert places(engine) == [EMPTIED, HERE, HERE, HERE]


def test_who_drained_it_first_is_told_and_at_size_0_there_is_nothing_to_do(engine: Engine) -> None:
    made = make_deployment(engine, "", n=0)
    drain(engine, EMPTIED)
    assert ask(engine, "drain_host", host=EMPTIED, actor="else").result == {
        "host": EMPTIED,
        "deployments": 0,
        "stay": [],
    }
    assert (shown(engine).drained_by, works_on(engine, made)) == ("ops", [""])


@pytest.mark.parametrize("task", ["drain_host", "undrain_host"])
@pytest.mark.parametrize("name", ["nowhere", EXTERNAL])
def test_a_host_that_nobody_knows_is_refused(engine: Engine, task: str, name: str) -> None:
    with pytest.raises(HostNotFoundError, match=f"there is no host {name}"):
        ask(engine, task, host=name)
