"""`rollway status`, `history`, `routes` and `logs` against a real Postgres."""

import json
import re
from pathlib import Path

import pytest
from sqlalchemy import Engine

from db.engine import transaction
from db.replicas.hosts import show_sign_of_life
from tests.cli.conftest import Rollway
from tests.support.deployments import make_deployment, write
from tests.support.pictures import PENDING, PROVISIONING

pytestmark = pytest.mark.usefixtures("servers")


def change(engine: Engine, assignments: str) -> None:
    with transaction(engine) as connection:
        connection.execute(f"UPDATE deployments SET {assignments}")


def test_the_table_has_a_line_for_each_deployment(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■|◇", name="web", status=PROVISIONING)
    make_deployment(engine, "■▲|", name="api", n=2)
    lines = rollway("status").out.splitlines()
    assert [line.split()[:4] for line in lines if line.startswith(("api", "web"))] == [
        ["api", "ready", "1/2", "v2"],
        ["web", "deploying/provisioning", "2/3", "v1"],
    ]
    assert any("■■|◇" in line for line in lines)


def test_without_deployments_the_way_to_one_is_shown(rollway: Rollway) -> None:
    assert "rollway apply -f" in rollway("status").out


def test_a_page_says_what_the_rollout_waits_for_and_how_long_it_may(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING)
    change(engine, "reason = 'waiting: 1 new starting'")
    page = rollway("status", "web").out
    assert "■■|◇  3 wanted, 1 provisioning, 2 healthy" in page
    assert "waiting: 1 new starting" in page
    assert "v1 → v2" in page
    assert "by test, begun 0 s ago; 30 min left; 0 of 3 failures" in page


def test_work_that_nobody_does_is_called_out(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine)
    change(engine, "due_at = now() - interval '40 seconds'")
    for arguments in (["status"], ["status", "web"]):
        assert "due for 40 s, but no worker has looked" in rollway(*arguments).out


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


def test_a_deployment_with_a_revision_waits_for_a_worker_and_not_for_a_revision(
    rollway: Rollway, engine: Engine
) -> None:
    make_deployment(engine, "", status=PENDING)
    change(engine, "reason = 'waiting for a first revision'")
    assert "waiting for a first revision" in rollway("status", "web").out
    rollway("activate", "web", "v1")
    assert "why waiting for a worker to begin with v1" in " ".join(rollway("status", "web").out.split())


def test_the_last_failure_is_shown_with_the_way_to_its_log(rollway: Rollway, engine: Engine) -> None:
    made = make_deployment(engine, "■■|✗", status=PROVISIONING)
    with transaction(engine) as connection:
        connection.execute("UPDATE rollouts SET failed_routes = 1")
    assert f"rollway logs {made.routes[2].hex[-8:]}" in rollway("status", "web").out


def test_documents_hold_everything_for_a_script(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING)
    shown = json.loads(rollway("status", "web", "--json").out)
    assert (shown["state"], shown["picture"], len(shown["routes"])) == ("deploying/provisioning", "■■|◇", 3)
    assert shown["rollout"]["to_revision"] == "v2"
    everything = json.loads(rollway("status", "--json").out)
    assert [deployment["name"] for deployment in everything["deployments"]] == ["web"]
    assert everything["stack"]["phase"] == "stopped"
    assert len(json.loads(rollway("routes", "web", "--json").out)) == 3
    assert json.loads(rollway("history", "web", "--json").out) == []


def test_pipes_get_no_colours_and_nothing_is_cut_off(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■▲|◇", status=PROVISIONING)
    reason = "a long reason " * 20
    change(engine, f"reason = '{reason}'")
    said = rollway("status").out + rollway("status", "web").out + rollway("routes", "web").out
    assert "\x1b" not in said
    assert reason.strip() in said


def test_words_that_look_like_markup_are_shown_as_they_are(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine)
    change(engine, "reason = 'got [red]503[/red] :boom:'")
    assert "got [red]503[/red] :boom:" in rollway("status").out
    rollway("scale", "web", "2", "--reason", "[/b]")
    assert "from 3 to 2 replicas: [/b]" in rollway("history", "web").out


def test_history_tells_who_and_why_in_order(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine)
    rollway("scale", "web", "4", "--actor", "ann", "--reason", "sale")
    rollway("scale", "web", "3", "--actor", "bob")
    lines = rollway("history", "web").out.splitlines()
    assert "ann" in lines[1]
    assert "from 3 to 4 replicas: sale" in lines[1]
    assert "bob" in lines[2]
    assert len(rollway("history", "web", "-n", "1").out.splitlines()) == 2


def test_routes_that_are_gone_are_shown_when_asked_for(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■✗")
    assert "✗ failed" not in rollway("routes", "web").out
    assert "✗ failed" in rollway("routes", "web", "--all").out


def test_a_destroyed_deployment_can_still_be_read(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "")
    change(engine, "lifecycle = 'destroyed', due_at = NULL")
    assert "No deployments yet" in rollway("status").out
    assert rollway("status", "web").out.startswith("web  destroyed")
    assert rollway("history", "web").code == 0


def log_of(route: object, home: Path, content: str) -> None:
    path = home / "logs" / "replicas" / f"{route}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def test_logs_understand_the_first_and_the_last_digits_of_a_route(
    rollway: Rollway, engine: Engine, tmp_path: Path
) -> None:
    route = make_deployment(engine, "■", n=1).routes[0]
    log_of(route, tmp_path / "home", "one\ntwo\nthree\n")
    for given in (str(route), route.hex, route.hex[-8:].upper(), str(route)[:20]):
        assert rollway("logs", given).out == "one\ntwo\nthree\n"
    assert rollway("logs", route.hex, "-n", "1").out == "three\n"
    assert json.loads(rollway("logs", route.hex, "--json").out)["lines"] == ["one", "two", "three"]


def test_a_route_that_could_be_several_is_refused_with_all_of_them(rollway: Rollway, engine: Engine) -> None:
    routes = make_deployment(engine, "■■").routes
    ended = rollway("logs", routes[0].hex[:4])
    assert ended.code == 2
    assert all(route.hex[-8:] in ended.err for route in routes)
    assert rollway("logs", "what").code == 2
    assert rollway("logs", "0" * 32).code == 1


def test_following_a_log_ends_when_the_replica_is_gone(rollway: Rollway, engine: Engine, tmp_path: Path) -> None:
    route = make_deployment(engine, "■", n=1).routes[0]
    log_of(route, tmp_path / "home", "bye\n")
    with transaction(engine) as connection:
        connection.execute("UPDATE routes SET status = 'failed', traffic_status = 'inactive', stopped_at = now()")
    assert rollway("logs", route.hex, "--follow").out == "bye\n"


def test_a_replica_of_another_host_has_no_log_here(rollway: Rollway, engine: Engine) -> None:
    route = make_deployment(engine, "■", n=1).routes[0]
    ended = rollway("logs", route.hex)
    assert (ended.code, ended.out) == (0, "")
    assert "it runs on another host" in ended.err
