import socket
from contextlib import closing
from uuid import uuid4

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived

from domain.revisions.health_check import HealthCheck
from runtime.probing.http1 import ProbeAnswer
from runtime.probing.http2 import GrpcQuestion, Http2Question
from runtime.probing.probes import Prober, ProbeTarget
from runtime.process.process_runtime import ProcessRuntime
from tests.support.stack.waiting import eventually
from tests.support.workers.probed import OK, answer, post, replying, says, service
from tests.support.workers.runtimes import HTTP_SERVICE, ended, request


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


KNOWN = "shop.example.com"


@pytest.mark.parametrize(
    ("host", "seen"),
    [
        (KNOWN, ProbeAnswer(ok=True, detail=f"GET /health as {KNOWN} answered 200")),
        ("other.example.com:8000", ProbeAnswer(ok=False, detail="GET /health as other.example.com:8000 answered 400")),
    ],
)
def test_a_replica_that_takes_its_own_host_name_alone_is_asked_by_it(host: str, seen: ProbeAnswer) -> None:
    with replying(lambda _, named: OK if named == KNOWN else OK.replace(b"200", b"400")) as address:
        assert answer(address, host=host) == seen


def test_a_replica_that_does_not_know_the_name_of_a_probe_is_told_what_names_another() -> None:
    with replying(lambda _, named: OK if named == KNOWN else OK.replace(b"200", b"421")) as address:
        told = answer(address)
    assert told.detail == f"GET /health answered 421 to Host: {address}; health_check.host names another"


@pytest.mark.parametrize("question", [Http2Question, GrpcQuestion])
@pytest.mark.parametrize(("host", "authority"), [(None, b"127.0.0.1:1"), (KNOWN, KNOWN.encode())])
def test_over_http2_it_is_the_authority(question: type[Http2Question], host: str | None, authority: bytes) -> None:
    protocol = "grpc" if question is GrpcQuestion else "http2"
    asked = question("127.0.0.1:1", HealthCheck(protocol=protocol, host=host))
    server = H2Connection(H2Configuration(client_side=False))
    server.initiate_connection()
    (request,) = (event for event in server.receive_data(asked.to_send()) if isinstance(event, RequestReceived))
    assert dict(request.headers)[b":authority"] == authority
