"""`rollway logs` against a real Postgres: of a replica, of a deployment, of another host."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis
from sqlalchemy import Engine

from db.connection.transactions import transaction
from tasks.hosts.host_rpc import LOGS, HostAnswers, LogAnswers, answer_for_host
from tests.cli.conftest import Rollway
from tests.support.rows.deployments import make_deployment, write

pytestmark = pytest.mark.usefixtures("servers")


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
    assert rollway("logs", "what").code == 1
    assert rollway("logs", "0" * 32).code == 1


def test_following_a_log_ends_when_the_replica_is_gone(rollway: Rollway, engine: Engine, tmp_path: Path) -> None:
    route = make_deployment(engine, "■", n=1).routes[0]
    log_of(route, tmp_path / "home", "bye\n")
    with transaction(engine) as connection:
        connection.execute("UPDATE routes SET status = 'failed', traffic_status = 'inactive', stopped_at = now()")
    assert rollway("logs", route.hex, "--follow").out == "bye\n"


def test_a_replica_that_has_printed_nothing_is_no_error(rollway: Rollway, engine: Engine) -> None:
    route = make_deployment(engine, "■", n=1).routes[0]
    write(engine, "UPDATE routes SET host = %s", socket.gethostname())
    ended = rollway("logs", route.hex)
    assert (ended.code, ended.out) == (0, "")
    assert "has printed nothing yet" in ended.err


def test_a_replica_of_another_host_has_its_log_there(rollway: Rollway, engine: Engine) -> None:
    route = make_deployment(engine, "■", n=1).routes[0]
    write(engine, "UPDATE routes SET host = 'gpu-2'")
    ended = rollway("logs", route.hex)
    assert (ended.code, ended.out) == (1, "")
    assert "runs on host gpu-2" in ended.err
    refused = json.loads(rollway("logs", route.hex, "--json").out)["error"]
    assert (refused["code"], refused["detail"]["host"]) == ("on_another_host", "gpu-2")


def test_the_logs_of_a_deployment_are_those_of_its_replicas_here_and_the_names_of_the_others(
    rollway: Rollway, engine: Engine, tmp_path: Path
) -> None:
    made = make_deployment(engine, "■■■")
    here, silent, there = (route.hex[-8:] for route in made.routes)
    write(engine, "UPDATE routes SET host = %s", socket.gethostname())
    write(engine, "UPDATE routes SET host = 'gpu-2' WHERE id = %s", made.routes[2])
    log_of(made.routes[0], tmp_path / "home", "one\n\ntwo\n")
    assert rollway("logs", "web", "-n", "2").out.splitlines() == [
        f"==> {here} v1 healthy <==",
        "",
        "two",
        f"==> {silent} v1 healthy <==",
        "(it has printed nothing yet, or what runs it keeps its log)",
        f"==> {there} v1 healthy on host gpu-2 <==",
        "(its log is there)",
    ]
    told = json.loads(rollway("logs", "web", "--json").out)
    assert [(log["lines"], log["host"]) for log in told][::2] == [
        (["one", "", "two"], socket.gethostname()),
        (None, "gpu-2"),
    ]
    assert rollway("logs", "web", "--follow", "--json").code == 2
    write(
        engine,
        "UPDATE routes SET status = 'failed', traffic_status = 'inactive', log_tail = 'boom', stopped_at = now()",
    )
    assert "web has no replicas" in rollway("logs", "web").err


def test_a_crash_at_rest_is_shown_for_an_hour_and_then_no_more(rollway: Rollway, engine: Engine) -> None:
    route = make_deployment(engine, "■■✗").routes[2].hex[-8:]
    killed = "status_reason = 'its process was killed by SIGKILL', status_changed_at = now()"
    write(engine, f"UPDATE routes SET {killed} WHERE status = 'failed'")
    page = rollway("status", "web").out
    assert re.search(rf"its process was killed by SIGKILL \(v1 on here, \d+ s ago; rollway logs {route}\)", page)
    assert f"==> {route} v1 failed" in rollway("logs", "web").out
    write(engine, "UPDATE routes SET status_changed_at = now() - interval '61 minutes' WHERE status = 'failed'")
    assert "SIGKILL" not in rollway("status", "web").out
    assert route not in rollway("logs", "web").out


@pytest.fixture
def gpu_2(redis_url: str, tmp_path: Path) -> Iterator[Path]:
    """The home of another host, which answers for its logs."""
    until, home = threading.Event(), tmp_path / "gpu-2"
    with redis.Redis.from_url(redis_url) as client:
        thread = answer_for_host(HostAnswers(client, "gpu-2", {LOGS: LogAnswers(home)}), until)
        yield home
        until.set()
        thread.join(10)


def test_the_hosts_of_other_replicas_are_asked_for_their_logs(rollway: Rollway, engine: Engine, gpu_2: Path) -> None:
    route = make_deployment(engine, "■", n=1).routes[0]
    write(engine, "UPDATE routes SET host = 'gpu-2'")
    log_of(route, gpu_2, "one\ntwo\n")
    assert rollway("logs", route.hex, "-n", "1").out == "two\n"
    shown = rollway("logs", "web").out
    assert shown == f"==> {route.hex[-8:]} v1 healthy on host gpu-2 <==\none\ntwo\n"
    assert json.loads(rollway("logs", "web", "--json").out)[0]["lines"] == ["one", "two"]


def test_following_a_deployment_names_a_host_that_is_silent_and_goes_on_with_the_others(
    engine: Engine, tmp_path: Path, gpu_2: Path
) -> None:
    here, there, lost = make_deployment(engine, "■■■").routes
    write(engine, "UPDATE routes SET host = 'gpu-2' WHERE id = %s", there)
    write(engine, "UPDATE routes SET host = 'gpu-3' WHERE id = %s", lost)
    log_of(here, tmp_path / "home", "from here\n")
    log_of(there, gpu_2, "from there\n")
    command = [sys.executable, "-m", "cli.main", "logs", "web", "--follow"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as following,
        ExitStack() as stack,
    ):
        stack.callback(following.kill)
        assert following.stdout is not None
        assert following.stderr is not None
        shown = {following.stdout.readline() for _ in range(2)}
        assert shown == {f"{here.hex[-8:]} v1 | from here\n", f"{there.hex[-8:]} v1 | from there\n"}
        assert "host gpu-3 does not say what its replicas print" in following.stderr.readline()
        with (gpu_2 / "logs" / "replicas" / f"{there}.log").open("a") as log:
            log.write("more\n")
        assert following.stdout.readline() == f"{there.hex[-8:]} v1 | more\n"
        following.send_signal(signal.SIGINT)
        assert following.wait(20) == 0


def test_following_a_deployment_shows_whose_each_line_is_until_ctrl_c(engine: Engine, tmp_path: Path) -> None:
    made = make_deployment(engine, "■■")
    first, second = (route.hex[-8:] for route in made.routes)
    for route in made.routes:
        log_of(route, tmp_path / "home", "before\nhere\n")
    command = [sys.executable, "-m", "cli.main", "logs", "web", "--follow", "-n", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following, ExitStack() as stack:
        stack.callback(following.kill)
        assert following.stdout is not None
        shown = {following.stdout.readline() for _ in made.routes}
        assert shown == {f"{first} v1 | here\n", f"{second} v1 | here\n"}
        with (tmp_path / "home" / "logs" / "replicas" / f"{made.routes[1]}.log").open("a") as log:
            log.write("one\ntwo\nhalf a li")
        assert following.stdout.readline() == f"{second} v1 | one\n"
        assert following.stdout.readline() == f"{second} v1 | two\n"
        following.send_signal(signal.SIGINT)
        assert following.wait(20) == 0
        assert following.stdout.read() == ""
