"""`rollway status`, `history` and `routes` against a real Postgres."""

import json
import re
from functools import partial
from typing import LiteralString

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction, transaction
from db.proxies.proxy_reports import add_requests
from domain.traffic.request_counts import NOBODY, Requests
from tests.cli.conftest import Rollway
from tests.support.pictures.pictures import PENDING, PROVISIONING
from tests.support.rows.deployments import ask, make_deployment, write

pytestmark = pytest.mark.usefixtures("servers")
AN_HOUR_AGO: LiteralString = """
    UPDATE deployment_history SET updated_at = updated_at - interval '61 min'
     WHERE deployment_id = (SELECT id FROM deployments WHERE name = 'old')
"""


def change(engine: Engine, assignments: str) -> None:
    with transaction(engine) as connection:
        connection.execute(f"UPDATE deployments SET {assignments}")


def test_the_table_has_a_line_for_each_deployment(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■|◇", name="web", status=PROVISIONING)
    make_deployment(engine, "■▲|", name="api", n=2)
    lines = rollway("status").out.splitlines()
    assert [line.split()[:4] for line in lines if line.startswith(("api", "web"))] == [
        ["api", "ready", "1/2", "v1"],  # which serves, though v2 is the current one
        ["web", "deploying/provisioning", "2/3", "v1"],
    ]
    assert any("■■|◇" in line for line in lines)


def test_who_loses_requests_stands_first_and_a_page_says_what_callers_get(rollway: Rollway, engine: Engine) -> None:
    made = make_deployment(engine, "■■", n=2)
    assert "requests" not in rollway("status").out + rollway("status", "web").out
    came = {("web", made.v1): Requests(9000, 0, 100, 900), ("web", NOBODY): Requests(failed=100)}
    in_transaction(engine, partial(add_requests, came=came, names=["web"]))
    first = next(line for line in rollway("status").out.splitlines() if "loses" in line)
    assert re.search(r"! web loses requests: [\d.]+ of \d+ requests/s failed in the last 2 minutes \(9.90%\): ", first)
    assert first.endswith("no replica was there, v1")
    page = rollway("status", "web").out
    assert re.search(r"v1: [\d.]+ requests/s, \S+ failed \(9.00%\), \S+ refused \(4xx\) \(1.00%\)", page)
    assert re.search(r"[\d.]+ requests/s found no replica", page)
    assert json.loads(rollway("status", "--json").out)["losing"][0]["deployment"] == "web"


def test_a_table_ends_after_so_many_lines_and_says_that_there_are_more(rollway: Rollway, engine: Engine) -> None:
    for name in ("api", "blog", "cart"):
        make_deployment(engine, name=name)
    assert "cart" in rollway("status").out
    cut = rollway("status", "-n", "2").out.splitlines()
    assert [line.split()[0] for line in cut[-3:]] == ["api", "blog", "There"]
    assert "'rollway status -n 20'" in cut[-1]
    assert len(json.loads(rollway("status", "--json", "-n", "2").out)["deployments"]) == 2
    assert len(json.loads(rollway("status", "--json").out)["deployments"]) == 3


def test_without_deployments_the_way_to_one_is_shown(rollway: Rollway) -> None:
    assert "rollway init" in rollway("status").out


def test_a_page_says_what_the_rollout_waits_for_and_how_long_it_may(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING)
    change(engine, "reason = 'waiting: 1 new starting'")
    page = rollway("status", "web").out
    assert "■■|◇  3 wanted, 1 provisioning, 2 healthy" in page
    assert "waiting: 1 new starting" in page
    assert "v1 → v2" in page
    assert re.search(r"by test, started \d+ s ago; .* left; 0 of 3 failures", page)


def test_work_that_nobody_does_is_called_out(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine)
    change(engine, "due_at = now() - interval '40 seconds'")
    for arguments in (["status"], ["status", "web"]):
        assert re.search(r"due for \d+ s, but no worker has looked", rollway(*arguments).out)


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


def test_history_without_a_name_is_that_of_the_fleet_within_the_last_hour(rollway: Rollway, engine: Engine) -> None:
    assert "Nothing has happened within the last hour" in rollway("history").out
    for name, replicas in (("old", 4), ("web", 5), ("mail", 6)):
        make_deployment(engine, "", name=name)
        ask(engine, "scale", deployment=name, desired_replicas=replicas, actor="ann")
    write(engine, AN_HOUR_AGO)
    head, *lines = rollway("history").out.splitlines()
    assert head.split() == ["WHEN", "DEPLOYMENT", "WHO", "WHAT", "WHY"]
    assert [line.split()[3:6] for line in lines] == [["web", "ann", "scale"], ["mail", "ann", "scale"]]
    assert [each["deployment"] for each in json.loads(rollway("history", "-n", "1", "--json").out)] == ["mail"]


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


def test_routes_say_where_they_run(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■", n=1)
    write(engine, "UPDATE routes SET host = 'gpu-2'")
    assert "gpu-2" in rollway("routes", "web").out
    assert json.loads(rollway("routes", "web", "--json").out)[0]["host"] == "gpu-2"


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("need_retry", "draining 1 (at least 3 of 3 stay) (the last of 6 steps)"),
        ("error", "draining 1 (at least 3 of 3 stay) (6 times)"),
    ],
)
def test_steps_that_were_merged_are_not_called_the_same(
    rollway: Rollway, engine: Engine, result: str, said: str
) -> None:
    made = make_deployment(engine)
    write(
        engine,
        """
        INSERT INTO deployment_history (deployment_id, phase, result, target, actor, message, attempts)
        VALUES (%s, 'scaling', %s, 'scaling', 'scaling', 'draining 1 (at least 3 of 3 stay)', 6)
        """,
        made.id,
        result,
    )
    assert said in rollway("history", "web").out
