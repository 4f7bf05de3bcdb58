"""A deployment's maintenance: when it begins, continues otherwise and ends, and what stands of it in the history."""

import pytest
from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.proxies.traffic_reader import read_traffic
from domain.text.errors import WrongStateError
from domain.traffic.maintenance import Maintenance
from tests.support.rows.deployments import ask, make_deployment, read


def kept(engine: Engine) -> Maintenance | None:
    with transaction(engine) as connection:
        (deployment,) = read_traffic(connection).deployments
    return deployment.maintenance


def test_it_goes_on_since_it_began_until_it_is_over(engine: Engine) -> None:
    make_deployment(engine, "■", n=1)
    assert kept(engine) is None
    begun = ask(engine, "set_maintenance", deployment="web", state="on", actor="ann", reason="disks").result
    first = kept(engine)
    assert first is not None
    assert (first.by, first.reason, first.since.isoformat()) == ("ann", "disks", begun["since"])
    same = ask(engine, "set_maintenance", deployment="web", state="on", actor="bob", reason="disks").result
    assert (same["already"], same["version"], kept(engine)) == (True, begun["version"], first)
    other = ask(engine, "set_maintenance", deployment="web", state="on", actor="bob", allow="X-In: 1").result
    now = kept(engine)
    assert now == Maintenance(since=first.since, by="bob", allow="x-in: 1")
    assert (other["already"], other["since"]) == (False, begun["since"])
    over = ask(engine, "set_maintenance", deployment="web", state="off").result
    assert (over["already"], over["since"], kept(engine)) == (False, None, None)
    assert ask(engine, "set_maintenance", deployment="web", state="off").result["already"]
    query = "SELECT actor, message FROM deployment_history WHERE phase = 'set_maintenance' ORDER BY updated_at, id"
    assert [tuple(row.values()) for row in read(engine, query)] == [
        ("ann", "maintenance on: disks"),
        ("bob", "maintenance on"),
        ("unknown", "maintenance off"),
    ]


def test_other_settings_leave_it_as_it_is(engine: Engine) -> None:
    make_deployment(engine, "■", n=1)
    ask(engine, "set_maintenance", deployment="web", state="on")
    before = kept(engine)
    ask(engine, "set_traffic", deployment="web", hosts=["www.example.com"])
    assert kept(engine) == before


def test_what_is_being_destroyed_has_none(engine: Engine) -> None:
    make_deployment(engine, "■", n=1)
    ask(engine, "destroy", deployment="web")
    with pytest.raises(WrongStateError, match="its maintenance can be set"):
        ask(engine, "set_maintenance", deployment="web", state="on")
