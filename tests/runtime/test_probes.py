import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from uuid import uuid4

import pytest

from domain.revision import HealthCheck
from runtime.base import Replica
from runtime.probes import ProbeAnswer, Prober, ProbeTarget, probe_many
from runtime.process import ProcessRuntime
from tests.runtime.support import HTTP_SERVICE, ended, eventually, log_of, request


def answer(address: str, **check: object) -> ProbeAnswer:
    target = ProbeTarget(uuid4(), address, HealthCheck.model_validate(check))
    return probe_many([target])[target.route_id]


def service(runtime: ProcessRuntime, **env: str) -> Replica:
    replica = runtime.start(request(HTTP_SERVICE, env=env))
    log_of(runtime, replica.route_id, "listens")
    return replica


def post(replica: Replica, path: str) -> None:
    connection = HTTPConnection(replica.address)
    connection.request("POST", path)
    assert connection.getresponse().status == 200
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


def test_a_hanging_replica_delays_nobody_beyond_its_own_timeout(runtime: ProcessRuntime) -> None:
    good = service(runtime)
    with says(None) as silent, Prober() as prober:
        quick = HealthCheck(timeout_seconds=0.3)
        hanging = [ProbeTarget(uuid4(), silent, quick) for _ in range(20)]
        slow = ProbeTarget(uuid4(), good.address, HealthCheck(path="/slow?seconds=0.2", timeout_seconds=2))
        prompt = ProbeTarget(uuid4(), good.address, HealthCheck(timeout_seconds=0.25))
        before = time.monotonic()
        answers = prober.probe_many([*hanging, slow, prompt])
        assert time.monotonic() - before < 0.9
        assert {answers[target.route_id].detail for target in hanging} == {"GET /health: no answer within 0.3 s"}
        assert answers[slow.route_id].ok
        assert answers[prompt.route_id].ok


def test_a_prober_asks_again_and_again_over_fresh_connections(
    runtime: ProcessRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    replica = service(runtime)
    target = ProbeTarget(replica.route_id, replica.address, HealthCheck())
    with Prober() as prober:
        assert prober.probe_many([]) == {}
        assert prober.probe_many([target])[replica.route_id].ok
        runtime.terminate(replica.route_id)
        ended(runtime, replica.route_id)
        assert prober.probe_many([target])[replica.route_id].detail.endswith("refused the connection")
