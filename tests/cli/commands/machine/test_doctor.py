"""`rollway doctor` tells how big the tables are and what will be cut of them."""

import json

import pytest
from sqlalchemy import Engine

from domain.installation.retention import Retention
from tests.cli.conftest import Rollway
from tests.support.rows.deployments import ask, make_deployment, write
from tests.support.rows.past import cut, gone_routes, how_many, records

pytestmark = pytest.mark.usefixtures("servers")


def test_doctor_says_what_will_be_cut_of_each_table_as_it_then_is(rollway: Rollway, engine: Engine) -> None:
    made = make_deployment(engine, "■■■")
    records(engine, made, 260, days=40)
    gone_routes(engine, made, 80, days=8)
    ask(engine, "scale", deployment="web", desired_replicas=3)
    write(engine, "UPDATE commands SET created_at = now() - interval '8 days'")
    write(engine, "ANALYZE")
    told = {table["name"]: table for table in json.loads(rollway("doctor", "--json").out)["tables"]}
    assert {name: table["to_cut"] for name, table in told.items() if table["to_cut"]} == {
        "deployment_history": 60,
        "routes": 30,
        "commands": 1,
    }
    assert (told["deployment_history"]["rows"], told["routes"]["rows"]) == (260, 83)
    assert told["deployment_history"]["bytes"] > 16_384
    shown = rollway("doctor").out
    assert [line.split()[0] for line in shown.splitlines() if line.split()[-1] == "60"] == ["deployment_history"]
    cut(engine, Retention())
    assert (how_many(engine, "deployment_history"), how_many(engine, "routes")) == (200, 53)
