"""Where deployments are reached: what a new one gets, and what a command changes."""

import pytest
from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.views.fleet_views import reached_at
from domain.commands.base import StaleVersionError
from tests.support.rows.deployments import ask, read
from tests.support.rows.entrances import DEFAULTS, entrances, timeout_of


def test_a_new_deployment_is_reached_by_its_name_as_host_and_as_prefix(engine: Engine) -> None:
    ask(engine, "create_deployment", deployment="web")
    assert entrances(engine) == DEFAULTS
    assert timeout_of(engine) is None


def test_a_name_that_is_no_host_gives_only_a_prefix(engine: Engine) -> None:
    ask(engine, "create_deployment", deployment="a..b")
    ask(engine, "create_deployment", deployment="preview.web")
    assert entrances(engine, "a..b") == ["prefix /a..b/"]
    assert entrances(engine, "preview.web") == ["prefix /preview.web/"]


def test_where_it_is_reached_is_replaced_told_and_marked(engine: Engine) -> None:
    ask(engine, "create_deployment", deployment="web")
    done = ask(
        engine,
        "set_traffic",
        deployment="web",
        hosts=["www.example.com", "*.example.com"],
        path_prefix="/api/",
        strip_prefix=False,
        request_timeout_seconds=30,
        actor="ann",
    )
    assert entrances(engine) == ["host *.example.com", "host www.example.com", "prefix /api/ passed on"]
    assert timeout_of(engine) == 30
    assert done.result["version"] == 2
    assert [entrance["value"] for entrance in done.result["entrances"]] == ["*.example.com", "www.example.com", "/api/"]
    (row,) = read(engine, "SELECT actor, message FROM deployment_history WHERE phase = 'set_traffic'")
    assert row == {
        "actor": "ann",
        "message": "reached as *.example.com, www.example.com, /api/ (passed on), each request within 30 s",
    }


def test_what_is_named_replaces_everything_and_naming_nothing_brings_the_beginning_back(engine: Engine) -> None:
    ask(engine, "create_deployment", deployment="web")
    ask(engine, "set_traffic", deployment="web", hosts=["www.example.com"])
    assert entrances(engine) == ["host www.example.com"]
    ask(engine, "set_traffic", deployment="web", path_prefix="/")
    assert entrances(engine) == ["prefix /"]
    ask(engine, "set_traffic", deployment="web", hosts=[])
    assert entrances(engine) == []
    ask(engine, "set_traffic", deployment="web", request_timeout_seconds=5)
    assert (entrances(engine), timeout_of(engine)) == (DEFAULTS, 5)
    ask(engine, "set_traffic", deployment="web")
    assert (entrances(engine), timeout_of(engine)) == (DEFAULTS, None)


def test_whoever_saw_an_older_version_is_refused(engine: Engine) -> None:
    ask(engine, "create_deployment", deployment="web")
    ask(engine, "set_traffic", deployment="web", hosts=["example.com"], expected_version=1)
    with pytest.raises(StaleVersionError):
        ask(engine, "set_traffic", deployment="web", hosts=[], expected_version=1)
    assert entrances(engine) == ["host example.com"]


def test_people_read_the_same_as_proxies(engine: Engine) -> None:
    ask(engine, "create_deployment", deployment="web")
    (row,) = read(engine, "SELECT id FROM deployments")
    with transaction(engine) as connection:
        seen = reached_at(connection, row["id"])
    assert [f"{entrance.kind} {entrance.value}" for entrance in seen.entrances] == entrances(engine)
    ask(engine, "set_traffic", deployment="web", hosts=[], request_timeout_seconds=3)
    with transaction(engine) as connection:
        assert reached_at(connection, row["id"]).rules.timeout_seconds == 3
        assert reached_at(connection, row["id"]).entrances == ()
