"""Who has not been heard of is called out by `rollway status` and by what is asked of it: workers, beat, api."""

import json
import re
from pathlib import Path

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction, transaction
from db.due_work import note_tick
from db.proxies.acks import SeenProxy, note_proxies
from tests.cli.conftest import Rollway
from tests.support.pictures.policies import CANARY
from tests.support.rows.acknowledged import publish, see
from tests.support.rows.deployments import make_deployment, write

pytestmark = pytest.mark.usefixtures("servers")


def test_workers_that_are_not_heard_of_are_called_out_by_what_is_asked_of_them(
    rollway: Rollway, engine: Engine
) -> None:
    make_deployment(engine)
    never = "no worker is known yet, so nothing is started or stopped"
    assert never in rollway("status").out
    write(engine, "INSERT INTO hosts (name, address, last_seen_at) VALUES ('here', 'here', now() - interval '40 s')")
    silent = r"no worker has sent a heartbeat for 4\d s, so nothing is started, probed or stopped; does one run\?"
    for arguments in (["status"], ["status", "web"]):
        assert re.search(f"^! {silent}", rollway(*arguments).out, re.MULTILINE)
    scaled = rollway("scale", "web", "4")
    assert scaled.code == 0
    assert re.fullmatch(f"note: {silent}\n", scaled.err)
    waited = rollway("scale", "web", "5", "--wait", "--timeout", "0.2")
    assert waited.code == 4
    assert re.search(f"^waited 0.2 s; web is ready: {silent}$", waited.err, re.MULTILINE)
    assert json.loads(rollway("status", "--json").out)["signs_of_life"]["worker"] is not None
    write(engine, "INSERT INTO hosts (name, address) VALUES ('here', 'here') ON CONFLICT DO NOTHING")
    write(engine, "UPDATE hosts SET last_seen_at = now() + interval '1 h'")  # a busy machine takes seconds for a test
    assert "no worker" not in rollway("status").out + rollway("status", "web").out
    assert rollway("scale", "web", "3").err == ""


def test_who_asks_for_a_judge_is_told_which_proxies_tell_it_nothing(
    rollway: Rollway, engine: Engine, tmp_path: Path
) -> None:
    judged = {"strategy": "canary", "spec": {"steps": ["5%"], "replicas": 2, "max_surge": 2, "judge": {}}}
    file = tmp_path / "applied.yaml"
    file.write_text("deployment: applied\nrevision: {name: v2, command: sleep 60, working_directory: null}\n")
    write(engine, "INSERT INTO hosts (name, address) VALUES ('here', 'here') ON CONFLICT DO NOTHING")
    write(engine, "UPDATE hosts SET last_seen_at = now() + interval '1 h'")  # a busy machine takes seconds for a test
    for name, policy in (("judged", judged), ("timed", CANARY), ("applied", judged), ("restarted", judged)):
        make_deployment(engine, "■■■", name=name, policy=policy, spec={"command": ["sleep", "60"]})
    note = "note: judged: no live proxy tells what it answers, so its judge will find nothing; seconds need no judge\n"
    assert rollway("activate", "judged", "v2").err == note
    assert rollway("apply", "-f", str(file)).err == note.replace("judged:", "applied:")
    assert rollway("restart", "restarted").err == note.replace("judged:", "restarted:")
    assert rollway("activate", "timed", "v2").err == ""
    publish(engine)
    see(engine, "silent")
    telling = SeenProxy("telling", "envoy", 3600, stats_address="127.0.0.1:9902")
    in_transaction(engine, lambda connection: note_proxies(connection, [telling]))
    some = "note: judged: only 1 of 2 live proxies report answers: its judge sees no others\n"
    assert rollway("activate", "judged", "v2").err == some
    write(engine, "DELETE FROM proxies WHERE node_id = 'silent'")
    assert rollway("activate", "judged", "v2").err == ""


def test_who_asks_for_a_judge_is_told_where_its_chances_do_not_hold(
    rollway: Rollway, engine: Engine, tmp_path: Path
) -> None:
    file = tmp_path / "web.yaml"
    file.write_text("deployment: web\nrevision: {name: v2, command: sleep 60, working_directory: null}\n")
    write(engine, "INSERT INTO hosts (name, address) VALUES ('here', 'here') ON CONFLICT DO NOTHING")
    write(engine, "UPDATE hosts SET last_seen_at = now() + interval '1 h'")  # a busy machine takes seconds for a test
    publish(engine)
    with transaction(engine) as connection:
        note_proxies(connection, [SeenProxy("telling", "envoy", 3600, stats_address="127.0.0.1:9902")])
    policy = {"strategy": "canary", "spec": {"steps": ["5%"], "sticky": True, "judge": {}}}
    make_deployment(engine, "■■■", policy=policy, spec={"command": ["sleep", "60"]})
    assert rollway("apply", "-f", str(file)).err == (
        "note: web: its callers are sticky: where failures follow the caller, as of one that leaves each time, a "
        "canary that is no worse is aborted more often than 1%; "
        "refused and redirected not judged, for one caller could decide\n"
        "note: web: its canary has one replica at 5 %: what befalls that replica alone, such as a busy machine, counts "
        "as the revision's, and aborts it more often than 1%\n"
    )


def test_a_server_for_proxies_that_fell_silent_is_called_out(rollway: Rollway, engine: Engine) -> None:
    assert "api" not in rollway("status").out
    write(engine, "INSERT INTO publishers (id, seen_at) VALUES ('api-1', now() - interval '3 hours')")
    assert "! the server for proxies (api) has been silent for 3 h:" in rollway("status").out


def test_a_beat_that_fell_silent_is_called_out_where_a_worker_would_have_heard_it(
    rollway: Rollway, engine: Engine
) -> None:
    write(engine, "INSERT INTO hosts (name, address) VALUES ('here', 'here') ON CONFLICT DO NOTHING")
    write(engine, "UPDATE hosts SET last_seen_at = now() + interval '1 h'")  # a busy machine takes seconds for a test
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
