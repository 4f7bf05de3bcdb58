"""Who has not been heard of is called out by `rollway status` and by what is asked of it: workers, beat, api."""

import json
import re

import pytest
from sqlalchemy import Engine

from db.beat import note_tick
from db.engine import in_transaction, transaction
from db.replicas.hosts import show_sign_of_life
from tests.cli.conftest import Rollway
from tests.support.deployments import make_deployment, write

pytestmark = pytest.mark.usefixtures("servers")


def test_workers_that_are_not_heard_of_are_called_out_by_what_is_asked_of_them(
    rollway: Rollway, engine: Engine
) -> None:
    make_deployment(engine)
    never = "no worker has been heard of yet, so nothing is started or stopped"
    assert never in rollway("status").out
    write(engine, "INSERT INTO hosts (name, address, last_seen_at) VALUES ('here', 'here', now() - interval '40 s')")
    silent = r"no worker has been heard of for 4\d s, so nothing is started, probed or stopped; does one run\?"
    for arguments in (["status"], ["status", "web"]):
        assert re.search(f"^! {silent}", rollway(*arguments).out, re.MULTILINE)
    scaled = rollway("scale", "web", "4")
    assert scaled.code == 0
    assert re.fullmatch(f"note: {silent}\n", scaled.err)
    waited = rollway("scale", "web", "5", "--wait", "--timeout", "0.2")
    assert waited.code == 4
    assert re.search(f"^waited 0.2 s; web is ready: {silent}$", waited.err, re.MULTILINE)
    assert json.loads(rollway("status", "--json").out)["signs_of_life"]["worker"] is not None
    with transaction(engine) as connection:
        show_sign_of_life(connection, "here", "here")
    assert "no worker" not in rollway("status").out + rollway("status", "web").out
    assert rollway("scale", "web", "3").err == ""


def test_a_server_for_proxies_that_fell_silent_is_called_out(rollway: Rollway, engine: Engine) -> None:
    assert "api" not in rollway("status").out
    write(engine, "INSERT INTO publishers (id, seen_at) VALUES ('api-1', now() - interval '3 hours')")
    assert "! the server for proxies (api) has not been heard of for 3 h:" in rollway("status").out


def test_a_beat_that_fell_silent_is_called_out_where_a_worker_would_have_heard_it(
    rollway: Rollway, engine: Engine
) -> None:
    with transaction(engine) as connection:
        show_sign_of_life(connection, "here", "here")
    assert "beat" not in rollway("status").out, "none was ever heard of"
    for _ in range(2):
        in_transaction(engine, note_tick)
    assert "beat" not in rollway("status").out
    write(engine, "UPDATE beat SET ticked_at = now() - interval '3 hours'")
    assert "! no tick of beat has reached a worker for 3 h: what waits for a time waits;" in rollway("status").out
    write(engine, "UPDATE hosts SET last_seen_at = now() - interval '40 s'")
    assert "no tick of beat" not in rollway("status").out, "nobody could hear it"
    in_transaction(engine, note_tick)
    assert json.loads(rollway("status", "--json").out)["signs_of_life"]["beat"] is not None
