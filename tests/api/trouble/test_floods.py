"""Half requests, idle connections and huge bodies disturb no acknowledgement, with as few files as systems give."""

import resource
import shlex
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge, api_process, edge_of
from tests.support.rows.deployments import Made
from tests.support.stack.server_process import Process
from tests.support.stack.waiting import eventually

MANY = 1100
FILES = 1024
HALF = b"POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
WHOLE = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.fixture(scope="module")
def narrow_edge(module_database: str, module_redis: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    """One whose server may open 1,024 files, as the usual limit is."""
    folder = tmp_path_factory.mktemp("edge")
    api = api_process(module_database, module_redis, folder)
    api.command = ["bash", "-c", f"ulimit -n {FILES}; exec {shlex.join(api.command)}"]
    with edge_of(api, module_database, module_redis, folder) as edge:
        yield edge


@contextmanager
def connections(api: Process, first_bytes: bytes) -> Iterator[list[socket.socket]]:
    """As many as there may be files, and some more, each with these bytes sent."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        opened = []
        for _ in range(MANY):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", api.port), timeout=10))
            opened.append(client)
            with suppress(OSError):
                client.sendall(first_bytes)
        yield opened


def is_closed(client: socket.socket) -> bool:
    """By the server; what it may have answered before is read away."""
    client.settimeout(0.01)
    try:
        while client.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


@pytest.mark.parametrize("first_bytes", [HALF, HALF + b"content-length: 500\r\n\r\n{", WHOLE])
def test_as_many_connections_as_there_are_files_disturb_no_acknowledgement(
    narrow_edge: Edge, eight_replicas: Made, first_bytes: bytes
) -> None:
    usual = max(narrow_edge.seconds_of_a_drain(route) for route in eight_replicas.routes[:2])
    with connections(narrow_edge.api, first_bytes) as opened:
        assert max(narrow_edge.seconds_of_a_drain(route) for route in eight_replicas.routes[2:5]) < 20 * usual + 1
        assert plain_http.get(f"{narrow_edge.api.url}/healthz").status_code == 200
        eventually(lambda: sum(is_closed(client) for client in opened) >= MANY - FILES // 2)
    assert "out of system resource" not in narrow_edge.api.log.read_text()


def test_who_sends_half_a_request_is_left_after_a_while_however_slowly_it_goes_on(narrow_edge: Edge) -> None:
    with socket.create_connection(("127.0.0.1", narrow_edge.api.port)) as client:
        client.sendall(HALF)

        def drips() -> bool:
            with suppress(OSError):
                client.sendall(b"x")
            return is_closed(client)

        eventually(drips)


def test_a_huge_body_is_refused_before_it_is_read(narrow_edge: Edge, eight_replicas: Made) -> None:
    usual = max(narrow_edge.seconds_of_a_drain(route) for route in eight_replicas.routes[:2])
    size = 50 * 2**20
    head = HALF + f"content-length: {size}\r\n\r\n".encode()
    for start in (head, HALF + b"transfer-encoding: chunked\r\n\r\n" + f"{size:x}\r\n".encode()):
        with socket.create_connection(("127.0.0.1", narrow_edge.api.port), timeout=10) as client:
            client.sendall(start)
            with suppress(OSError):
                for _ in range(16):
                    client.sendall(b"[]," * 2**15)
            with suppress(ConnectionResetError):
                assert b" 413 " in client.recv(100)
            eventually(lambda: is_closed(client))
    assert max(narrow_edge.seconds_of_a_drain(route) for route in eight_replicas.routes[2:4]) < 20 * usual + 1
    assert narrow_edge.api.process is not None
    resident = Path(f"/proc/{narrow_edge.api.process.pid}/status").read_text()
    assert int(resident.partition("VmHWM:")[2].split()[0]) < 400_000


def test_a_server_may_open_as_many_files_as_the_system_lets_it(narrow_edge: Edge) -> None:
    assert narrow_edge.api.process is not None
    soft, hard = resource.prlimit(narrow_edge.api.process.pid, resource.RLIMIT_NOFILE)
    assert soft == hard
