import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from uuid import uuid4

import pytest

from domain.replicas.revision import HealthCheck
from runtime.base import Replica
from runtime.probes import ProbeAnswer, Prober, ProbeTarget
from runtime.process import ProcessRuntime
from tests.support.runtimes import HTTP_SERVICE, ended, log_of, request
from tests.support.waiting import eventually

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def answer(address: str | None, **check: object) -> ProbeAnswer:
    assert address is not None
    target = ProbeTarget(uuid4(), address, HealthCheck.model_validate(check))
    with closing(Prober()) as prober:
        prober.submit([target])
        return prober.answers(10)[target.route_id]


def service(runtime: ProcessRuntime, **env: str) -> Replica:
    replica = runtime.start(request(HTTP_SERVICE, env=env))
    log_of(runtime, replica.route_id, "listens")
    return replica


def post(replica: Replica, path: str) -> None:
    assert replica.address is not None
    connection = HTTPConnection(replica.address)
    connection.request("POST", path)
    assert connection.getresponse().status == 200
    connection.close()


@contextmanager
def counting() -> Iterator[tuple[str, list[socket.socket]]]:
    """A server that accepts and never says a word, and the connections that were made to it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections: list[socket.socket] = []

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connections.append(server.accept()[0])

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}", connections
        server.shutdown(socket.SHUT_RDWR)
        for connection in connections:
            connection.close()


@contextmanager
def says(reply: bytes | None) -> Iterator[str]:
    """A server that sends `reply` to every connection and closes it; None: accepts and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(reply or b"")

        if reply is not None:
            threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def test_a_healthy_replica_answers_200_and_a_broken_one_503(runtime: ProcessRuntime) -> None:
    replica = service(runtime)
    assert answer(replica.address) == ProbeAnswer(ok=True, detail="GET /health answered 200")
    post(replica, "/break")
    assert answer(replica.address) == ProbeAnswer(ok=False, detail="GET /health answered 503")
    post(replica, "/mend")
    assert answer(replica.address).ok
    assert answer(replica.address, path="/nowhere").detail == "GET /nowhere answered 404"


def test_a_service_is_not_healthy_before_its_start_up_time(runtime: ProcessRuntime) -> None:
    replica = service(runtime, STARTUP_SECONDS="0.5")
    assert not answer(replica.address).ok
    eventually(lambda: answer(replica.address).ok)
    assert not answer(service(runtime, BROKEN="health").address).ok


def test_a_service_that_breaks_at_its_start_says_so_and_ends(runtime: ProcessRuntime) -> None:
    replica = runtime.start(request(HTTP_SERVICE, env={"BROKEN": "start"}))
    assert ended(runtime, replica.route_id).exit_code == 1
    assert runtime.log_tail(replica.route_id, 1) == "cannot start: BROKEN=start"


def test_a_refused_connection_is_told() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        assert answer(address) == ProbeAnswer(ok=False, detail=f"{address} refused the connection")


def test_a_redirect_is_a_success_and_is_not_followed() -> None:
    with says(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n") as address:
        assert answer(address) == ProbeAnswer(ok=True, detail="GET /health answered 302")


@pytest.mark.parametrize("reply", [b"", b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 2"])
def test_what_is_not_http_is_a_failure(reply: bytes) -> None:
    with says(reply) as address:
        assert answer(address) == ProbeAnswer(
            ok=False, detail="GET /health: the connection broke, or the answer is not HTTP"
        )


def test_an_endless_body_is_not_read() -> None:
    with says(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nstart") as address:
        assert answer(address).ok


@pytest.mark.parametrize("path", ["/a\nb", "/\N{SNOWMAN}", "//", "/?a=b c", "/" + "a" * 70000])
def test_an_odd_path_raises_nothing(runtime: ProcessRuntime, path: str) -> None:
    assert answer(service(runtime).address, path=path).detail.startswith("GET /")


def test_a_hanging_replica_delays_nobody() -> None:
    with says(None) as silent, says(OK) as good, closing(Prober()) as prober:
        hanging = ProbeTarget(uuid4(), silent, HealthCheck(timeout_seconds=0.5))
        others = [ProbeTarget(uuid4(), good, HealthCheck()) for _ in range(20)]
        prober.submit([hanging])
        prober.submit(others)
        answers = prober.answers(5)
        assert answers.keys() == {target.route_id for target in others}, "the one that hangs is not waited for"
        assert all(answer.ok for answer in answers.values())
        assert prober.is_busy
        late = eventually(lambda: prober.answers(0))
        assert late == {hanging.route_id: ProbeAnswer(ok=False, detail="GET /health: no answer within 0.5 s")}
        assert not prober.is_busy


def test_to_submit_and_to_take_answers_wait_for_no_replica() -> None:
    with says(None) as silent, closing(Prober()) as prober:
        hanging = [ProbeTarget(uuid4(), silent, HealthCheck(timeout_seconds=300)) for _ in range(50)]
        before = time.monotonic()
        prober.submit(hanging)
        assert prober.answers(0.1) == {}
        assert 0.1 <= time.monotonic() - before < 0.5
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


def test_an_address_that_cannot_be_resolved_is_told_and_holds_up_nobody() -> None:
    with says(OK) as good, closing(Prober()) as prober:
        nowhere = ProbeTarget(uuid4(), "nowhere.invalid:80", HealthCheck(timeout_seconds=1))
        fine = ProbeTarget(uuid4(), good, HealthCheck())
        prober.submit([nowhere])
        prober.submit([fine])
        seen = prober.answers(5)
        assert seen[fine.route_id].ok
        eventually(lambda: not prober.is_busy)
        told = {**seen, **prober.answers(0)}[nowhere.route_id]
        assert not told.ok
        assert told.detail.startswith(("nowhere.invalid:80 could not be reached: ", "GET /health: no answer within"))


@pytest.mark.parametrize("address", ["", "127.0.0.1:99999", "127.0.0.1:x", "h:1/x", "a..b:80", "[::1"])
def test_an_odd_address_raises_nothing(address: str) -> None:
    assert not answer(address).ok


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
    threads = threading.active_count()
    with says(None) as silent, closing(Prober()) as prober:
        prober.submit([ProbeTarget(uuid4(), silent, HealthCheck(timeout_seconds=300))])
        eventually(lambda: prober.is_busy)
    assert threading.active_count() == threads
