"""Who gets what two want, and when it is free again."""

import threading
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from db.commands.execute import Origin, execute
from db.commands.traffic_settings import take_default_entrances
from db.connection.transactions import transaction
from domain.commands.registry import parse_command
from domain.text.errors import RollwayError, WrongStateError
from domain.traffic.entrances import EntranceTakenError
from tests.support.pictures.pictures import DESTROYED, DESTROYING
from tests.support.rows.deployments import ask, make_deployment, read, write
from tests.support.rows.entrances import DEFAULTS, entrances


def test_another_deployments_entrance_is_refused_by_name_and_nothing_changes(engine: Engine) -> None:
    ask(engine, "create_deployment", deployment="web")
    ask(engine, "create_deployment", deployment="api")
    ask(engine, "set_traffic", deployment="api", hosts=["example.com"])
    for wanted in ({"hosts": ["example.com"]}, {"hosts": ["free.example.com", "example.com"], "path_prefix": "/x/"}):
        with pytest.raises(EntranceTakenError, match=r"host example\.com is api's, so web cannot have it; take it"):
            ask(engine, "set_traffic", deployment="web", **wanted)
    with pytest.raises(EntranceTakenError, match="prefix /web/ is web's, so api cannot have it"):
        ask(engine, "set_traffic", deployment="api", path_prefix="/web/")
    assert entrances(engine) == DEFAULTS
    assert entrances(engine, "api") == ["host example.com"]


def test_an_explicit_entrance_wins_over_what_a_new_deployment_would_get(engine: Engine) -> None:
    ask(engine, "create_deployment", deployment="front")
    ask(engine, "set_traffic", deployment="front", hosts=["web", "front"])
    ask(engine, "create_deployment", deployment="web")
    assert entrances(engine) == ["host web.localhost", "prefix /web/"]
    done = ask(engine, "set_traffic", deployment="web")
    assert entrances(engine) == ["host web.localhost", "prefix /web/"]
    assert [entrance["value"] for entrance in done.result["entrances"]] == ["web.localhost", "/web/"]
    assert entrances(engine, "front") == ["host front", "host web"]


@pytest.mark.parametrize(
    ("wanted", "owner"),
    [
        ({"path_prefix": "/shop/pay/"}, "shop"),
        ({"hosts": ["pay.shop.localhost"]}, "shop"),
        ({"hosts": ["a.example.com"]}, "site"),
        ({"hosts": ["pay"]}, "pay"),
        ({"hosts": ["free.example.org"], "path_prefix": "/web/new/"}, None),
        ({}, None),
    ],
)
def test_within_another_deployments_or_named_after_it_none_is_had_by_who_does_not_see_that_one(
    engine: Engine, wanted: Mapping[str, Any], owner: str | None
) -> None:
    for name in ("web", "shop", "site", "pay"):
        ask(engine, "create_deployment", deployment=name)
    ask(engine, "set_traffic", deployment="site", hosts=["*.example.com"])
    ask(engine, "set_traffic", deployment="pay", hosts=["pays.example.net"])  # what it is named after is free
    command = parse_command("rollway.set_traffic", {"request_id": str(uuid4()), "deployment": "web", **wanted})
    if owner is not None:
        with pytest.raises(EntranceTakenError, match=f"is {owner}'s, so web cannot have it"):
            execute(engine, command, origin=Origin(sees=("web",)))
        assert entrances(engine) == DEFAULTS
    sees_it = ("web", owner) if owner else ("web",)
    assert execute(engine, command, origin=Origin(sees=sees_it)).result["deployment"] == "web"


def test_what_was_a_destroyed_deployments_is_free(engine: Engine) -> None:
    gone = make_deployment(engine, name="old")
    with transaction(engine) as connection:
        take_default_entrances(connection, gone.id, "web")
    write(engine, "UPDATE deployments SET lifecycle = 'destroyed' WHERE id = %s", gone.id)
    ask(engine, "create_deployment", deployment="api")
    ask(engine, "set_traffic", deployment="api", hosts=["web.localhost"])
    ask(engine, "create_deployment", deployment="web")
    assert entrances(engine, "api") == ["host web.localhost"]
    assert entrances(engine) == ["host web", "prefix /web/"]


@pytest.mark.parametrize("status", [DESTROYING, DESTROYED])
def test_a_deployment_that_ends_keeps_where_it_was_reached(engine: Engine, status: Any) -> None:
    make_deployment(engine, status=status)
    with pytest.raises(RollwayError) as refused:
        ask(engine, "set_traffic", deployment="web", hosts=["example.com"])
    assert refused.value.code == ("wrong_state" if status is DESTROYING else "deployment_not_found")
    assert isinstance(refused.value, WrongStateError) == (status is DESTROYING)
    assert read(engine, "SELECT * FROM entrances") == []


def test_of_two_deployments_that_want_the_same_at_once_one_gets_all_of_it(engine: Engine) -> None:
    for name in ("web", "api"):
        ask(engine, "create_deployment", deployment=name)
    hosts = [f"h{number}.example.com" for number in range(50)]
    refused: list[str] = []

    def take(name: str, wanted: list[str]) -> None:
        try:
            ask(engine, "set_traffic", deployment=name, hosts=wanted)
        except EntranceTakenError:
            refused.append(name)

    threads = [
        threading.Thread(target=take, args=arguments) for arguments in (("web", hosts), ("api", list(reversed(hosts))))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1
    (winner,) = {"web", "api"} - set(refused)
    assert len(entrances(engine, winner)) == 50
    assert entrances(engine, refused[0]) == [
        f"host {refused[0]}",
        f"host {refused[0]}.localhost",
        f"prefix /{refused[0]}/",
    ]
