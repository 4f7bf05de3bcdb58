"""The demo's load counts what fails: a promise that cannot be broken would be worth nothing."""

import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from cli.demo.demo_command import load_document
from cli.demo.demo_run import demo_load
from cli.terminal.exits import WaitTimedOutError
from tests.support.proxies.own_servers import own_server
from tests.support.stack.ports import free_port
from tests.support.stack.waiting import eventually


class Replica(BaseHTTPRequestHandler):
    """Answers as the example service does, or as the test says."""

    protocol_version = "HTTP/1.1"
    mode = "good"
    connections: set[object]

    def do_GET(self) -> None:
        type(self).connections.add(self.connection)
        if self.headers["Host"] != "demo" or self.mode == "broken":
            return self.answer(503, b"")
        if self.mode == "cut":
            self.close_connection = True
            return None
        if self.mode == "faulty":
            return self.answer(500, json.dumps({"revision": "v2"}).encode())
        if self.mode == "stuck":
            time.sleep(3)
        if self.path.startswith("/slow"):
            time.sleep(0.2 if self.mode == "good" else 3)
        return self.answer(200, b"oops" if self.mode == "nonsense" else json.dumps({"revision": "v1"}).encode())

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def replica() -> Iterator[tuple[str, type[Replica]]]:
    handler = type("Handler", (Replica,), {"connections": set()})
    with own_server(handler) as server:
        yield f"http://{server.address}", handler


def test_good_answers_are_counted_by_revision_and_none_is_lost_at_the_end(replica: tuple[str, type[Replica]]) -> None:
    load = demo_load(replica[0], "demo")
    load.start()
    eventually(lambda: load.tally.requests > 150)
    load.stop()
    assert load.tally.failed == {}
    assert load.tally.answers == {(200, "v1"): load.tally.requests}
    assert str(load.tally) == f"0 of {load.tally.requests} requests failed"
    assert 10 < len(replica[1].connections) < load.tally.requests


@pytest.mark.parametrize(("mode", "kind"), [("broken", "503"), ("cut", "reset"), ("nonsense", "wrong body")])
def test_a_refusal_a_cut_and_a_wrong_answer_are_failures(
    replica: tuple[str, type[Replica]], mode: str, kind: str
) -> None:
    load = demo_load(replica[0], "demo")
    load.start()
    eventually(lambda: load.tally.answers[200, "v1"] > 10)
    replica[1].mode = mode
    eventually(lambda: load.tally.failed[kind] > 10)
    load.stop()
    failed, document = load.tally.failed, json.loads(json.dumps(load_document(load.tally)))
    assert failed.total() + load.tally.answers[200, "v1"] == load.tally.requests
    assert f"{failed[kind]} {kind}" in str(load.tally)
    assert (document["failed"], document["failures"][kind]) == (failed.total(), failed[kind])
    assert document["revisions"] == {"v1": load.tally.answers[200, "v1"]}


def test_what_a_revision_fails_is_counted_as_a_failure_and_as_its_own(replica: tuple[str, type[Replica]]) -> None:
    load = demo_load(replica[0], "demo")
    load.start()
    replica[1].mode = "faulty"
    eventually(lambda: load.tally.answers[500, "v2"] > 10)
    load.stop()
    answers = load.tally.answers
    assert load.tally.failed == {"500": answers[500, "v2"]}
    assert (load.tally.met("v2"), load.tally.met("v1")) == (answers[500, "v2"], answers[200, "v1"])
    assert load_document(load.tally)["faults"] == {"v2": answers[500, "v2"]}


def test_what_has_no_answer_at_the_end_failed(replica: tuple[str, type[Replica]]) -> None:
    replica[1].mode = "hangs"
    load = demo_load(replica[0], "demo")
    load.start()
    eventually(lambda: load.tally.kinds["slow get"] > 0)
    began = time.monotonic()
    load.stop(waits=False)
    assert time.monotonic() - began < 10, "it was told to wait for none of them"
    assert load.tally.failed["no answer"] >= 1
    assert load.tally.failed.total() + load.tally.answers[200, "v1"] == load.tally.requests


def test_no_more_than_fifty_requests_wait_for_their_answers(replica: tuple[str, type[Replica]]) -> None:
    load = demo_load(replica[0], "demo")
    load.start()
    replica[1].mode = "stuck"

    def unanswered() -> int:
        return load.tally.requests - load.tally.answers.total()

    eventually(lambda: unanswered() == 50)
    with pytest.raises(AssertionError):
        eventually(lambda: unanswered() > 50, within=0.5)
    assert load.tally.failed == {}, "what is not sent yet is no failure"
    load.stop(waits=False)


def test_a_load_that_reaches_nobody_does_not_begin() -> None:
    load = demo_load(f"http://127.0.0.1:{free_port()}", "demo")
    with pytest.raises(WaitTimedOutError, match="Envoy does not pass requests on to demo: ConnectError"):
        load.start(patience=0.3)
    load.stop()
    assert load.tally.requests == 0
