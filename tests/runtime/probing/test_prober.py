"""A prober and its probes in flight: it waits for nobody, and asks nobody twice at a time."""

import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from uuid import uuid4

import psutil
import pytest

from domain.revisions.health_check import HealthCheck
from runtime.probing.http1 import ProbeAnswer
from runtime.probing.probes import Prober, ProbeTarget
from runtime.process.process_runtime import ProcessRuntime
from tests.support.stack.waiting import eventually
from tests.support.workers.probed import OK, counting, post, says, service
from tests.support.workers.runtimes import ended


def test_a_hanging_replica_delays_nobody() -> None:
    with says(None) as silent, says(OK) as good, closing(Prober()) as prober:
        hanging = ProbeTarget(uuid4(), silent, HealthCheck(timeout_seconds=300))
        others = [ProbeTarget(uuid4(), good, HealthCheck()) for _ in range(20)]
        prober.submit([hanging])
        prober.submit(others)
        answers = prober.answers(60)
        assert answers.keys() == {target.route_id for target in others}, "the one that hangs is not waited for"
        assert all(answer.ok for answer in answers.values())
        assert prober.is_busy


def test_a_replica_that_hangs_is_told_of_when_its_time_is_over() -> None:
    with says(None) as silent, closing(Prober()) as prober:
        hanging = ProbeTarget(uuid4(), silent, HealthCheck(timeout_seconds=0.5))
        prober.submit([hanging])
        late = eventually(lambda: prober.answers(0))
        seen = ProbeAnswer(ok=False, detail="GET /health: no answer within 0.5 s", is_late=True)
        assert late == {hanging.route_id: seen}
        assert not prober.is_busy


def test_to_submit_and_to_take_answers_wait_for_no_replica() -> None:
    with says(None) as silent, closing(Prober()) as prober:
        hanging = [ProbeTarget(uuid4(), silent, HealthCheck(timeout_seconds=300)) for _ in range(50)]
        before = time.monotonic()
        prober.submit(hanging)
        assert prober.answers(0.1) == {}
        assert 0.1 <= time.monotonic() - before < 100
        assert prober.answers(0) == {}


def test_a_route_never_has_two_probes_in_flight() -> None:
    with counting() as (address, connections), closing(Prober()) as prober:
        target = ProbeTarget(uuid4(), address, HealthCheck(timeout_seconds=0.5))
        for _ in range(5):
            prober.submit([target, target])
        eventually(lambda: not prober.is_busy)
        assert len(connections) == 1
        prober.submit([target])
        eventually(lambda: len(connections) == 2)


def test_of_two_answers_that_nobody_took_the_newer_counts(runtime: ProcessRuntime) -> None:
    replica = service(runtime)
    target = ProbeTarget(replica.route_id, replica.address or "", HealthCheck())
    with closing(Prober()) as prober:
        prober.submit([target])
        eventually(lambda: not prober.is_busy)
        post(replica, "/break")
        prober.submit([target])
        eventually(lambda: not prober.is_busy)
        assert prober.answers(0) == {target.route_id: ProbeAnswer(ok=False, detail="GET /health answered 503")}


def test_a_prober_asks_again_and_again_over_fresh_connections(
    runtime: ProcessRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    replica = service(runtime)
    target = ProbeTarget(replica.route_id, replica.address or "", HealthCheck())
    with closing(Prober()) as prober:
        prober.submit([])
        assert prober.answers(1) == {}
        prober.submit([target])
        assert prober.answers(5)[replica.route_id].ok
        runtime.terminate(replica.route_id)
        ended(runtime, replica.route_id)
        prober.submit([target])
        assert prober.answers(5)[replica.route_id].detail.endswith("refused the connection")


def test_a_prober_that_is_closed_gives_up_what_is_in_flight() -> None:
    before = set(threading.enumerate())
    with says(None) as silent, closing(Prober()) as prober:
        prober.submit([ProbeTarget(uuid4(), silent, HealthCheck(timeout_seconds=300))])
        eventually(lambda: prober.is_busy)
    assert set(threading.enumerate()) <= before


STOPPED = """
import os, signal, sys, time
from uuid import uuid4
from domain.revisions.health_check import HealthCheck
from runtime.probing.probes import Prober, ProbeTarget

prober, target = Prober(), ProbeTarget(uuid4(), sys.argv[1], HealthCheck(timeout_seconds=3))
prober.submit([target])
time.sleep(0.5)
os.kill(os.getpid(), signal.SIGSTOP)
while prober.is_busy:
    time.sleep(0.01)
print(prober.answers(0))
"""


def test_a_process_that_stood_still_blames_no_replica_for_it() -> None:
    with says(None) as silent:
        asking = subprocess.Popen([sys.executable, "-c", STOPPED, silent], stdout=subprocess.PIPE, text=True)
        eventually(lambda: psutil.Process(asking.pid).status() == psutil.STATUS_STOPPED)
        time.sleep(5)  # longer than the time limit of the probe and a second
        asking.send_signal(signal.SIGCONT)
        assert asking.communicate(timeout=600)[0] == "{}\n"
