"""The load generator tells every way in which a request can fail, and counts from the moment it was due."""

import asyncio
import socket
import threading
import time

import pytest

from cli.demo.load.generator import LoadSettings
from cli.demo.load.mix import DEFAULT_MIX, Kind, plan
from cli.demo.load.tally import FailureKind, quantile
from tests.support.proxies.treated import (
    Treatment,
    always,
    hang,
    load,
    reply,
    requests,
    reset,
    run,
    server,
    truncate,
    whole,
)
from tests.support.stack.ports import free_port
from tools.bench.load import LoadError, running_load


@pytest.mark.parametrize(
    ("treat", "failed"),
    [
        (reset, "reset"),
        (truncate, "truncated"),
        (always(reply("503 Service Unavailable", b"no healthy upstream")), "503"),
        (always(reply("404 Not Found")), "404"),
        (always(reply(body=b"<html>")), "wrong body"),
        (always(reply(body=b'{"deployment": "web"}')), "wrong body"),
        (always(b"HTTP/1.1 200 OK\r\n\r\n"), "wrong body"),
    ],
    ids=["reset", "truncated", "503", "404", "no JSON", "no revision", "no length"],
)
def test_a_request_that_fails_is_told_with_its_kind(treat: Treatment, failed: str) -> None:
    with server(treat) as address:
        phase = load(address)
    assert phase.requests == 20
    assert phase.failed == {failed: 20}
    assert all(failure.idempotent and failure.request == "get" for failure in phase.failures)


def test_what_the_proxy_said_is_kept_with_the_failure() -> None:
    with server(always(reply("503 Service Unavailable", b"no healthy upstream"))) as address:
        phase = load(address, Kind.SLOW_POST)
    assert phase.failures[0].detail == "503 no healthy upstream"
    assert not phase.failures[0].idempotent
    assert phase.failures[0].kind is FailureKind.STATUS


def test_nobody_listening_is_a_failure_to_connect() -> None:
    phase = load(f"127.0.0.1:{free_port()}")
    assert phase.failed == {"connect": phase.requests}
    assert phase.requests == 20


def test_a_request_without_an_answer_fails_when_its_time_is_over() -> None:
    with server(hang) as address:
        phase = load(address, seconds=0.1, timeout=0.3)
    assert phase.failed == {"no answer": 5}
    assert all(0.3 <= failure.failed_at - failure.due_at < 2 for failure in phase.failures)


def test_a_request_that_is_due_while_too_many_are_open_fails_unsent() -> None:
    with server(hang) as address:
        settings = LoadSettings(
            address=address, host="web", rate=50, seconds=0.4, timeout=0.6, most_open=5, waits=False, mix={Kind.GET: 1}
        )
        phase = asyncio.run(run(settings))
    assert phase.failed == {"no answer": 5, "not sent": 15}


def test_an_upload_of_which_the_service_got_less_is_a_failure() -> None:
    with server(always(reply(body=b'{"revision": "v1", "bytes": 99999, "sha256": "0"}'))) as address:
        phase = load(address, Kind.UPLOAD, rate=20)
    assert phase.failed == {"wrong body": 8}
    assert "99999 of 100000 bytes arrived" in phase.failures[0].detail


def test_an_upload_that_is_refused_half_way_is_a_failure_once() -> None:
    def refuse(connection: socket.socket) -> None:
        connection.recv(100)
        connection.sendall(reply("503 Service Unavailable", b"overloaded"))

    with server(refuse) as address:
        phase = load(address, Kind.UPLOAD_LARGE, rate=10)
    assert phase.requests == 4
    assert sum(phase.failed.values()) == 4


def test_a_stall_is_felt_by_every_request_that_was_due_in_it() -> None:
    stalled = threading.Lock()

    def stall(connection: socket.socket) -> None:
        for _ in requests(connection):
            with stalled:
                connection.sendall(reply())

    with server(stall) as address:
        mix = {Kind.GET: 1.0}
        settings = LoadSettings(
            address=address, host="web", rate=200, seconds=1.5, connections=4, most_open=1000, waits=False, mix=mix
        )
        with running_load(settings) as running:
            time.sleep(0.3)
            with stalled:
                time.sleep(0.5)
            phase = whole(running.wait())
    assert phase.failed == {}
    # those due at the beginning of the stall waited 0.5 s, and a hundred were due in all
    assert phase.worst >= 0.45
    assert phase.p99 >= 0.4
    assert phase.requests == 300


def test_a_request_belongs_to_the_phase_in_which_it_was_due() -> None:
    with server(always(reply())) as address:
        settings = LoadSettings(address=address, host="web", rate=100, seconds=20, connections=4, mix={Kind.GET: 1})
        with running_load(settings) as running:
            time.sleep(0.2)
            began = running.phase("second")
            time.sleep(0.3)
            report = running.finish()
    first, second = report.phases
    assert second.name == "second"
    assert second.began_at == pytest.approx(began, abs=0.05)
    assert first.ended_at == second.began_at
    assert second.revisions["v1"].first_started >= began - 0.05
    assert second.answered == second.requests == pytest.approx(100 * (second.ended_at - second.began_at), abs=12)


def test_it_stops_by_itself_and_says_so_to_whoever_goes_on() -> None:
    with server(always(reply())) as address:
        settings = LoadSettings(address=address, host="web", rate=100, seconds=0.1, connections=1, mix={Kind.GET: 1})
        with running_load(settings) as running:
            running.wait()
            with pytest.raises(LoadError, match="ended with exit code 0 before it said 'phase'"):
                running.phase("late")


def test_load_is_sent_to_loopback_only() -> None:
    settings = LoadSettings(address="192.0.2.1:80", host="web", rate=1, seconds=1)
    with pytest.raises(LoadError, match="exit code 1"), running_load(settings):
        pass


def test_the_plan_is_the_same_for_the_same_seed() -> None:
    def first(seed: int) -> list[object]:
        return [planned for planned, _ in zip(plan(seed, "web"), range(2000), strict=False)]

    assert first(7) == first(7)
    assert first(7) != first(8)
    assert {planned.kind for planned, _ in zip(plan(7, "web"), range(5000), strict=False)} == set(DEFAULT_MIX)


def test_quantiles_are_values_that_occurred() -> None:
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.0
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.99) == 4.0
    assert quantile([5.0], 1.0) == 5.0
    assert quantile([], 0.5) == 0.0
