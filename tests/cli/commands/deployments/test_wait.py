"""`--wait` says what it waits for: against a real Postgres, with a coordinator and no worker hosts."""

import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.replicas.reports import RouteReport, apply_reports
from domain.model.states import RouteStatus
from stack.home.folder import project_root
from tests.cli.conftest import Rollway
from tests.support.people.promoted import green_waits
from tests.support.pictures.pictures import READY, SCALING
from tests.support.rows.deployments import ask, make_deployment, read, write
from tests.support.stack.waiting import eventually
from tests.support.workers.coordinators import cycling

pytestmark = pytest.mark.usefixtures("servers")


def test_a_wait_for_a_person_says_what_to_type_and_has_an_exit_code_of_its_own(
    rollway: Rollway, engine: Engine
) -> None:
    green_waits(engine)
    ended = rollway("activate", "web", "v2", "--wait", "--timeout", "0")
    assert ended.code == 6
    assert "■■■|□□□   waits for you: rollway promote web\n" in ended.out
    assert "web waits for you: rollway promote web (waited 0 s).\n" in ended.err
    scripted = rollway("activate", "web", "v2", "--wait", "--timeout", "0", "--json")
    assert (scripted.code, json.loads(scripted.out)["error"]["code"]) == (6, "waits_for_person")


def test_what_is_waited_for_is_printed_as_it_changes_though_the_replicas_stay_as_they_are(
    rollway: Rollway, engine: Engine
) -> None:
    make_deployment(engine, "■■■", status=READY)

    def pause() -> None:
        eventually(lambda: read(engine, "SELECT FROM rollouts WHERE steps > 0"), what="the first step")
        ask(engine, "pause", deployment="web")

    with cycling(engine), ThreadPoolExecutor(1) as threads:
        paused = threads.submit(pause)
        ended = rollway("activate", "web", "v2", "--wait", "--timeout", "2")
        paused.result()
    words = [line.split("  ")[-1] for line in ended.out.splitlines()]
    assert words[-2:] == ["waiting: 1 new starting; 0 of 3 ready", "waits for you: rollway resume web"]
    assert ended.code == 6


def test_a_promotion_that_waits_shows_what_comes_and_not_what_was(rollway: Rollway, engine: Engine) -> None:
    green_waits(engine)
    with cycling(engine):
        ended = rollway("promote", "web", "--wait", "--timeout", "20")
    assert ended.code == 0
    assert "creating" not in ended.out
    assert "promoted: 3 green in, 3 blue out" in ended.out


def test_whoever_stops_waiting_is_told_that_the_rollout_goes_on(engine: Engine) -> None:
    make_deployment(engine, "■■■", status=READY)
    command = [sys.executable, "-m", "cli.main", "scale", "web", "5", "--wait"]
    with subprocess.Popen(
        command, cwd=project_root(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout
        assert running.stderr
        assert running.stdout.readline() == "web scaled from 3 to 5 replicas\n"
        assert "■■■" in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        said = running.stderr.read().splitlines()[-1]
    assert running.returncode == 130
    assert said == "No longer waiting; the command continues, and 'rollway status --watch' shows it."


def test_the_last_sentence_of_a_failed_rollout_names_the_cause_with_the_end_of_the_log(
    rollway: Rollway, engine: Engine
) -> None:
    make_deployment(engine, "■■■", status=READY, policy={"strategy": "rolling_update", "spec": {"max_surge": 1}})
    cause = "its process ended with exit code 3; its log ends: loading / boom"

    def fail_whatever_starts() -> None:
        while not read(engine, "SELECT FROM rollouts WHERE back_reason IS NOT NULL"):
            starting = read(engine, "SELECT id, deployment_id FROM routes WHERE status = 'provisioning'")
            reports = [
                RouteReport(
                    row["id"],
                    row["deployment_id"],
                    RouteStatus.PROVISIONING,
                    RouteStatus.FAILED,
                    reason="its process ended with exit code 3",
                    log_tail="loading\nboom\n",
                )
                for row in starting
            ]
            in_transaction(engine, partial(apply_reports, reports=reports))
            write(engine, "UPDATE deployments SET due_at = now(), last_failed_at = now() - interval '1 hour'")

    with cycling(engine), ThreadPoolExecutor(1) as threads:
        failed = threads.submit(fail_whatever_starts)
        ended = rollway("activate", "web", "v2", "--wait", "--timeout", "20")
        failed.result()
    assert ended.code == 1
    why = f"3 new replicas failed, the limit is 3; last: {cause}"
    assert f"the rollout to v2 was rolled back: {why}.\n" in ended.err
    assert why in [record["message"] for record in json.loads(rollway("history", "web", "--json").out)]


def test_a_first_revision_that_never_comes_up_is_told_with_its_cause(rollway: Rollway, engine: Engine) -> None:
    made = make_deployment(engine, "◇", n=1, status=SCALING)
    report = RouteReport(
        made.routes[0], made.id, RouteStatus.PROVISIONING, RouteStatus.FAILED, reason="exit code 3", log_tail="boom"
    )
    in_transaction(engine, partial(apply_reports, reports=[report]))
    gave_up = "UPDATE deployments SET lifecycle = 'ready', degraded_reason = 'it took too long', retry_at = now()"
    ask(engine, "scale", deployment="web", desired_replicas=1, request_id="r1", actor="ann")
    write(engine, gave_up)
    arguments = ("--wait", "--timeout", "5", "--request-id", "r1", "--actor", "ann")
    ended = rollway("scale", "web", "1", *arguments)
    assert ended.code == 1
    assert "web is degraded: it took too long; a replica failed: exit code 3; its log ends: boom.\n" in ended.err


def test_a_slow_start_says_once_what_it_waits_for(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "◇◇", n=2, status=SCALING)
    said = "status_reason = 'No Docker engine answers', created_at = now() - interval '10 s'"
    write(engine, f"UPDATE routes SET {said}")
    ended = rollway("scale", "web", "3", "--wait", "--timeout", "2")
    assert ended.out.count("! a start of v1 waits: No Docker engine answers\n") == 1


@pytest.mark.parametrize(("starts", "code"), [(2, 4), (3, 1)])
def test_nobody_waits_for_a_fourth_start_of_what_has_never_been_healthy(
    rollway: Rollway, engine: Engine, starts: int, code: int
) -> None:
    made = make_deployment(engine, "◇", n=1, status=SCALING)
    report = RouteReport(
        made.routes[0], made.id, RouteStatus.PROVISIONING, RouteStatus.FAILED, reason="exit code 3", log_tail="boom"
    )
    in_transaction(engine, partial(apply_reports, reports=[report]))
    write(engine, f"UPDATE deployments SET failed_starts = {starts}")
    ended = rollway("scale", "web", "2", "--wait", "--timeout", "1")
    assert ended.code == code
    assert "! a start of v1 failed: exit code 3; its log ends: boom" in ended.out
    mends = (
        "3 starts failed in a row, the last one: exit code 3; its log ends: boom; mend what it runs, and apply it again"
    )
    assert (f"v1 of web has never been healthy: {mends}.\n" in ended.err) is (code == 1)
    told = rollway("why", "web").out
    assert "; the last start failed: exit code 3; its log ends: boom" in told
    write(engine, "UPDATE routes SET healthy_at = now()")
    assert rollway("scale", "web", "3", "--wait", "--timeout", "1").code == 4
