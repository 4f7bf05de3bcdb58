"""Real HTTP servers that serve metrics, garbage, or nothing at all."""

import gzip
import math
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from domain.autoscaling.scaling_decision import MetricSample
from domain.traffic.tls import ReplicaTls
from runtime.probing import replica_metrics
from runtime.probing.replica_metrics import MAX_BYTES, MAX_LINES, MetricsPage, read_pages, samples_in
from tests.support.certificates.authorities import Authority
from tests.support.stack.waiting import eventually

BUSY = frozenset({"busy"})


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may need longer than a replica is waited for."""
    monkeypatch.setattr(replica_metrics, "TIMEOUT_SECONDS", 60)


@contextmanager
def exporter(registry: CollectorRegistry) -> Iterator[str]:
    """The real thing: prometheus_client's own server."""
    server, thread = start_http_server(0, "127.0.0.1", registry)
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(5)


@contextmanager
def says(reply: bytes | None, *, endless: bool = False) -> Iterator[str]:
    """A server that sends `reply` to every connection and closes it, or again and again; None: never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        def answer(connection: socket.socket) -> None:
            with connection:
                try:
                    connection.recv(65536)
                    connection.sendall(reply or b"")
                    while endless:
                        connection.sendall(b"busy 1\n" * 1000)
                except OSError:
                    return

        if reply is not None:
            threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def page(body: bytes, status: str = "200 OK", header: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{header}\r\n".encode() + body


def read(address: str, *metrics: str, path: str = "/metrics") -> tuple[MetricSample, ...] | None:
    asked = MetricsPage(address, path, frozenset(metrics or BUSY))
    return read_pages([asked]).get(asked)


def test_the_page_of_a_real_exporter_is_read() -> None:
    registry = CollectorRegistry()
    busy = Gauge("busy", "requests in flight", ["queue"], registry=registry)
    busy.labels("cpu").set(1.5)
    busy.labels('g"p\\u').set(2)
    Gauge("busy_too", "another", registry=registry).set(9)
    Counter("served", "requests", registry=registry).inc(7)
    Histogram("seconds", "took", registry=registry).observe(0.3)
    with exporter(registry) as address:
        assert read(address) == (
            MetricSample("busy", {"queue": "cpu"}, 1.5),
            MetricSample("busy", {"queue": 'g"p\\u'}, 2),
        )
        assert read(address, "served_total") == (MetricSample("served_total", {}, 7),)
        assert read(address, "seconds_count", "busy_too") == (
            MetricSample("busy_too", {}, 9),
            MetricSample("seconds_count", {}, 1),
        )
        assert read(address, "nothing") == ()
        busy.labels("cpu").set(math.nan)
        assert [str(sample.value) for sample in read(address) or ()] == ["nan", "2.0"]


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 2",
        page(b"busy 1\n", "404 Not Found"),
        page(b"busy 1\n", "503 Service Unavailable"),
        page(b"", "302 Found", "Location: /other\r\n"),
        page(b"busy one\n"),
        page(b'busy{queue="gpu" 1\n'),
        page(b"busy \xff\xfe\n"),
        page(b"busy 1\nbusy\t\n"),
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbusy 1\n",
    ],
)
def test_what_is_no_page_of_metrics_is_no_answer(reply: bytes) -> None:
    with says(reply) as address:
        assert read(address) is None


def test_what_is_wrong_about_other_metrics_does_not_matter() -> None:
    body = b"\xff\xfe <html> broken{ 1\nbusy 3\nbusybody one\n# TYPE busy nonsense here\n{ } \n\n  busy 4\r\n"
    with says(page(body)) as address:
        assert read(address) == (MetricSample("busy", {}, 3), MetricSample("busy", {}, 4))


def test_a_packed_page_is_not_unpacked() -> None:
    with says(page(gzip.compress(b"busy 1\n"), header="Content-Encoding: gzip\r\n")) as address:
        assert read(address) == ()


def test_nobody_there_and_no_such_address_are_no_answer() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert read(f"127.0.0.1:{bound.getsockname()[1]}") is None
    for address in ("", "h:1:1", "h:port", "exa mple:1", "[::1"):
        assert read(address) is None


def test_a_page_that_is_too_long_or_has_too_many_lines_is_not_read() -> None:
    comment = b"# " + b"x" * MAX_BYTES + b"\n"
    with says(page(comment + b"busy 1\n")) as address:
        assert read(address) is None
    assert len(samples_in(b"busy 1\n" * MAX_LINES, BUSY) or ()) == MAX_LINES
    assert samples_in(b"busy 1\n" * (MAX_LINES + 1), BUSY) is None


def test_hanging_endless_and_broken_replicas_delay_nobody_beyond_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = CollectorRegistry()
    Gauge("busy", "requests in flight", registry=registry).set(3)
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\nbusy 1\n"
    chunked = b"HTTP/1.1 200 OK\r\n\r\n"
    with ExitStack() as stack:
        good = [stack.enter_context(exporter(registry)) for _ in range(3)]
        silent, broken = stack.enter_context(says(None)), stack.enter_context(says(half))
        endless = stack.enter_context(says(chunked, endless=True))
        bad = [silent] * 20 + [broken] * 5 + [endless] * 2
        pages = [MetricsPage(address, f"/{number}", BUSY) for number, address in enumerate(bad)]
        wanted = [MetricsPage(address, "/metrics", BUSY) for address in good]
        monkeypatch.setattr(replica_metrics, "TIMEOUT_SECONDS", 1)
        answers = eventually(lambda: read_pages([*pages, *wanted]))
        assert answers == {page: (MetricSample("busy", {}, 3),) for page in wanted}


def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with says(page(b"busy 1\n")) as address:
        assert read(address) == (MetricSample("busy", {}, 1),)


def test_no_pages_are_no_answers() -> None:
    assert read_pages([]) == {}


def test_a_name_is_only_itself() -> None:
    assert samples_in(b"busy 1\nbusy_x 2\nxbusy 3\nbusy:x 4\n", BUSY) == (MetricSample("busy", {}, 1),)
    assert samples_in(b"a:b 1\naxb 2\n", ["a:b"]) == (MetricSample("a:b", {}, 1),)


def test_a_page_is_read_by_tls_only_where_its_certificate_is_believed(tmp_path: Path) -> None:
    registry, authority = CollectorRegistry(), Authority.make()
    Gauge("busy", "requests in flight", registry=registry).set(3)
    chain, key = authority.certify("inside").written(tmp_path)
    server, _ = start_http_server(0, "127.0.0.1", registry, certfile=str(chain), keyfile=str(key))
    address = f"127.0.0.1:{server.server_port}"
    try:
        believes = ReplicaTls("inside", authority.pem)
        others = (
            ReplicaTls("other", authority.pem),
            ReplicaTls("inside", Authority.make().pem),
            ReplicaTls("inside", ""),
        )
        pages = [MetricsPage(address, "/metrics", BUSY, tls) for tls in (believes, None, *others)]
        answers = read_pages(pages)
        assert {page.tls: [sample.value for sample in samples] for page, samples in answers.items()} == {believes: [3]}
    finally:
        server.shutdown()
        server.server_close()
