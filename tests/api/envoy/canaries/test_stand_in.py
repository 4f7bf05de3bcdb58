"""A canary of one replica that cannot answer: the control answers for it, and the canary has failed."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from db.connection.transactions import in_transaction
from db.proxies.recorded_answers import intervals_of
from domain.model.answer_counts import Answers
from stack.home.folder import project_root
from tests.support.pictures.pictures import PROVISIONING
from tests.support.pictures.policies import CANARY
from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import replicas
from tests.support.proxies.weights import set_weight
from tests.support.rows.deployments import Made, write
from tests.support.stack.ports import free_port
from tests.support.stack.server_process import suspend
from tests.support.stack.waiting import eventually

HEDGE_AFTER = 0.5
HALF, ASKED = 5000, 60


@pytest.fixture
def split(envoy_edge: Edge) -> Iterator[tuple[Made, subprocess.Popen[bytes]]]:
    """An old replica, and as canary a process of its own that gets half of the requests."""
    port = free_port()
    env = {**os.environ, "PORT": str(port), "HOST": "127.0.0.1", "VERSION": "2"}
    script = project_root() / "examples" / "http_service.py"
    process = subprocess.Popen([sys.executable, str(script)], env=env, stderr=subprocess.DEVNULL)
    with replicas("old") as (old,):
        eventually(lambda: plain_http.get(f"http://127.0.0.1:{port}/health").status_code == 200)
        made = envoy_edge.make("■|■", old, f"127.0.0.1:{port}", status=PROVISIONING, policy=CANARY)
        write(
            envoy_edge.routes.engine,
            "UPDATE deployments SET hedge_after_seconds = %s WHERE id = %s",
            HEDGE_AFTER,
            made.id,
        )
        set_weight(envoy_edge, made, 0)
        set_weight(envoy_edge, made, HALF)
        eventually(lambda: len(answered(envoy_edge, made, 20)) == 2)
        yield made, process
    process.kill()
    process.wait()


def answered(edge: Edge, made: Made, asked: int) -> Counter[str]:
    """Who answered so many requests, all of which somebody did."""
    with ThreadPoolExecutor(10) as callers:
        found = list(callers.map(lambda _: plain_http.get(f"{edge.envoy.url}/{made.name}/", timeout=30), range(asked)))
    assert {response.status_code for response in found} == {200}
    return Counter("old" if '"old"' in response.text else "new" for response in found)


def told(edge: Edge, made: Made) -> tuple[Answers, Answers]:
    """What is counted of the old and of the new revision."""
    assert made.rollout_id is not None
    intervals = in_transaction(edge.routes.engine, partial(intervals_of, rollout_id=made.rollout_id))
    old, new = (
        sum((interval.of.get(revision, Answers()) for interval in intervals), Answers())
        for revision in (made.v1, made.v2)
    )
    return old, new


def frozen(process: subprocess.Popen[bytes]) -> None:
    suspend(process.pid)


def killed(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


@pytest.mark.parametrize("befalls", [frozen, killed])
def test_nobody_is_lost_with_a_canary_and_its_requests_count_as_failed(
    envoy_edge: Edge, split: tuple[Made, subprocess.Popen[bytes]], befalls: Callable[[subprocess.Popen[bytes]], None]
) -> None:
    made, process = split
    eventually(lambda: answered(envoy_edge, made, 10)["new"] and told(envoy_edge, made)[1].done > 0)
    befalls(process)
    assert answered(envoy_edge, made, ASKED) == {"old": ASKED}
    eventually(lambda: told(envoy_edge, made)[1].mended > ASKED / 8, what="half of them were the canary's")
    assert [answers.failed for answers in told(envoy_edge, made)] == [0, 0], "which no caller has seen"


def test_a_canary_that_is_not_healthy_gets_nothing_in_the_next_table(
    envoy_edge: Edge, split: tuple[Made, subprocess.Popen[bytes]]
) -> None:
    made, process = split
    frozen(process)
    write(envoy_edge.routes.engine, "UPDATE routes SET status = 'unhealthy' WHERE id = %s", made.routes[1])
    envoy_edge.routes.tell()
    before = told(envoy_edge, made)[1].done

    def is_left_alone() -> bool:
        began = told(envoy_edge, made)[1].begun or 0
        answered(envoy_edge, made, 20)
        return (told(envoy_edge, made)[1].begun or 0) == began

    eventually(is_left_alone)
    process.send_signal(signal.SIGCONT)
    write(envoy_edge.routes.engine, "UPDATE routes SET status = 'healthy' WHERE id = %s", made.routes[1])
    envoy_edge.routes.tell()
    eventually(lambda: answered(envoy_edge, made, 20)["new"] > 0)
    assert told(envoy_edge, made)[1].done >= before
