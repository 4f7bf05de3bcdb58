"""A thief that waits for the ports and sockets of a stack: through crashes of each part, and through restarts."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import redis
from redis.exceptions import AuthenticationError, NoPermissionError
from redis.exceptions import ConnectionError as RedisConnectionError

from domain.installation.tokens import Role
from stack.home.server_settings import Ports, load_settings
from stack.parts.valkey import add_user, remove_user
from stack.prepare import UpRequest
from stack.stack_errors import StackError
from stack.stack_status import PartStatus, stack_status
from stack.up import restart, up
from tests.support.proxies import plain_http
from tests.support.stack.environment import needs_open_clone
from tests.support.stack.example import run_example
from tests.support.stack.ports import free_port
from tests.support.stack.small_stack import kill
from tests.support.stack.waiting import eventually
from tests.support.trust.thief import WaitContext, around, asking

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT MAY CHANGE THE USER, SO THIS IS NOT TESTED HERE"),
    needs_open_clone,
]
STRANGER = 61_234
PARTS = ("people", "api", "flower", "beat", "worker1", "valkey", "postgres", "envoy", "redis-port")

WAITS = """
import json, select, socket, sys, time
ports, won, looks = json.loads(sys.argv[1]), [], 0
print("waiting", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    looks += 1
    for port in ports:
        for address in ("127.0.0.1", "0.0.0.0"):
            thief = socket.socket()
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            try:
                thief.bind((address, port))
                thief.listen()
                won.append(port)
            except OSError:
                pass
            thief.close()
    time.sleep(0.001)
print(json.dumps({"looks": looks, "won": won}), flush=True)
"""
"""Tries each port a thousand times a second or so, on loopback and everywhere, and says which it ever had."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WaitContext]:
    with around(tmp_path_factory.mktemp("stack"), tmp_path_factory.mktemp("other")) as made:
        request = UpRequest(home=made.home, environ={}, ports=Ports(forwarded={"redis": free_port()}))
        up(request, lambda _: None)
        yield made


@dataclass
class Loot:
    looks: int = 0
    won: list[int] = field(default_factory=list)


@contextmanager
def a_waiting_thief(stack: WaitContext) -> Iterator[Loot]:
    """Another user of the machine, who takes every port of the stack that he gets."""
    loot = Loot()
    with subprocess.Popen(
        [sys.executable, "-c", WAITS, json.dumps(sorted(listening(stack)))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        user=STRANGER,
        group=STRANGER,
        extra_groups=(),
        cwd="/",
    ) as thief:
        assert thief.stdout
        assert thief.stdin
        assert thief.stdout.readline() == b"waiting\n"
        try:
            yield loot
        finally:
            thief.stdin.close()
        said = json.loads(thief.stdout.readline())
        loot.looks, loot.won = said["looks"], said["won"]


def listening(stack: WaitContext) -> set[int]:
    """The ports of the stack's parts, by the system's own word."""
    return {
        connection.laddr.port
        for part in stack_status(stack.home).parts
        for connection in (psutil.Process(part.pid).net_connections("tcp") if part.pid else ())
        if connection.status == psutil.CONN_LISTEN
    }


def part_of(stack: WaitContext, name: str) -> PartStatus:
    return next(part for part in stack_status(stack.home).parts if part.name == name)


def crash(stack: WaitContext, name: str) -> None:
    """Kill a part, and wait until its successor is up."""
    before = part_of(stack, name)
    assert before.pid
    kill(before.pid)

    def is_back() -> bool:
        part = part_of(stack, name)
        return part.state == "running" and part.pid not in (None, before.pid)

    eventually(is_back, what=f"{name} to be back")


def test_a_thief_gets_no_port_of_a_part_that_crashes(stack: WaitContext) -> None:
    assert len(listening(stack)) >= 8
    with a_waiting_thief(stack) as loot:
        for name in PARTS:
            crash(stack, name)
    assert loot.looks > 100
    assert loot.won == []


def test_a_thief_gets_no_port_of_a_stack_that_is_restarted_or_taken_over(stack: WaitContext) -> None:
    request = UpRequest(home=stack.home, environ={})
    with a_waiting_thief(stack) as loot:
        for _ in range(2):
            restart(request, (), lambda _: None)
        supervisor = stack_status(stack.home).supervisor_pid
        assert supervisor
        kill(supervisor)
        eventually(lambda: stack_status(stack.home).phase == "lost")
        up(request, lambda _: None)
        crash(stack, "people")
    assert loot.looks > 100
    assert loot.won == []


@contextmanager
def asked_all_the_time(stack: WaitContext) -> Iterator[list[Any]]:
    """The page's answers, one after the other: a status, or the error."""
    with asking(stack.home, Role.VIEWER) as client:
        answers: list[Any] = []
        is_over = threading.Event()

        def ask() -> None:
            while not is_over.wait(0.005):
                try:
                    answers.append(plain_http.get(f"{client.base_url}/livez", timeout=30).status_code)
                except httpx.TransportError as error:
                    answers.append(repr(error))

        asker = threading.Thread(target=ask)
        asker.start()
        try:
            yield answers
        finally:
            is_over.set()
            asker.join()


def refused(answers: list[Any]) -> list[Any]:
    return [answer for answer in answers if "ConnectError" in str(answer)]


def test_whoever_asks_the_page_while_it_is_restarted_waits_and_is_answered(stack: WaitContext) -> None:
    request = UpRequest(home=stack.home, environ={})
    restart(request, ["people"], lambda _: None)
    with asked_all_the_time(stack) as answers:
        crash(stack, "people")
        restart(request, ["people"], lambda _: None)
    assert refused(answers) == []
    assert answers.count(200) > 5


def test_callers_of_a_page_that_a_new_supervisor_has_taken_over_wait_as_soon_as_its_end_is_known(
    stack: WaitContext,
) -> None:
    supervisor = stack_status(stack.home).supervisor_pid
    assert supervisor
    kill(supervisor)
    eventually(lambda: stack_status(stack.home).phase == "lost")
    up(UpRequest(home=stack.home, environ={}), lambda _: None)
    page = part_of(stack, "people")
    assert page.pid
    kill(page.pid)
    eventually(lambda: part_of(stack, "people").restarts > page.restarts)
    with asked_all_the_time(stack) as answers:
        eventually(lambda: 200 in answers, what="the page to be back")
    assert refused(answers) == []


def test_a_service_with_celery_alone_sends_commands_by_a_user_of_its_own(stack: WaitContext, tmp_path: Path) -> None:
    url = add_user(stack.home, "shop")
    assert add_user(stack.home, "shop") == url, "the same name gets the same password"
    done = run_example(url, tmp_path, "web", "v1", "because")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"]["revision"] == "v1"

    with redis.Redis.from_url(url) as shop:
        for words in (
            ("KEYS", "*"),
            ("LRANGE", "rollway:commands", "0", "-1"),
            ("RPOP", "rollway:commands"),
            ("LPUSH", "rollway:lifecycle", "x"),
            ("LPUSH", "rollway:host.vm", "x"),
            ("GET", "rollway:rest"),
            ("SET", "rollway:celery-task-meta-x", "x"),
            ("SUBSCRIBE", "rollway:traffic"),
            ("PUBLISH", "rollway:traffic", ""),
            ("CONFIG", "GET", "requirepass"),
            ("ACL", "LIST"),
            ("FLUSHALL",),
            ("EVAL", "return 1", "0"),
            ("MONITOR",),
        ):
            with pytest.raises(NoPermissionError):
                shop.execute_command(*words)

    crash(stack, "valkey")
    assert run_example(url, tmp_path, "web", "v1").returncode == 0, "the user outlives a crash of Redis"
    remove_user(stack.home, "shop")
    with redis.Redis.from_url(url) as shop, pytest.raises((AuthenticationError, RedisConnectionError)):
        shop.ping()
    with pytest.raises(StackError, match="Redis has no user 'shop' that was made here; there are: none"):
        remove_user(stack.home, "shop")
    with pytest.raises(StackError, match="'Shop!' is no name of a user: lower-case letters"):
        add_user(stack.home, "Shop!")


def test_a_port_is_closed_again_and_the_others_stay(stack: WaitContext) -> None:
    settings = load_settings(stack.home)
    assert settings
    port = settings.ports.forwarded["redis"]
    closed = up(UpRequest(home=stack.home, environ={}, ports=Ports(forwarded={"redis": 0})), lambda _: None)
    assert "redis-port" not in {part.name for part in closed.parts}
    with pytest.raises(StackError, match="No port leads to the embedded Redis: 'rollway up --redis-port 6379' opens"):
        add_user(stack.home, "shop")
    opened = up(UpRequest(home=stack.home, environ={}, ports=Ports(forwarded={"redis": port})), lambda _: None)
    assert {part.pid for part in closed.parts} < {part.pid for part in opened.parts}, "all others are kept"
