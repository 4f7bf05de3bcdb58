"""The xDS server and Envoy as parts of the stack: chosen, started, killed, stopped in order."""

import signal
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx
import psutil
import pytest

from runtime.machine.identity import identify
from stack.down import down
from stack.home.folder import Home
from stack.home.server_settings import Ports, ServerSettings, load_settings
from stack.home.stack_state import PartState, read_state
from stack.part_specs import Ready, StackPart
from stack.parts.envoy import envoy_host, envoy_parts, envoys_wanted
from stack.parts.processes import ProcessSetting, rollway_processes
from stack.prepare import Notice, UpRequest
from stack.stack_errors import StackError
from stack.stack_status import stack_status
from stack.supervisor.child.supervised import Child, is_ready
from stack.supervisor.stop import _ask, stop_in_order
from stack.up import up
from tests.support.proxies import plain_http
from tests.support.proxies.own_servers import own_server
from tests.support.stack.environment import ISOLATED
from tests.support.stack.ports import free_port
from tests.support.stack.small_stack import made_home
from tests.support.stack.waiting import eventually

SERVERS = ServerSettings(ports=Ports(flower=3, api=4, envoy=1), envoy_node="edge-1")


def processes(home: Home, envoys: int) -> list[StackPart]:
    setting = ProcessSetting(home=home, database_url="", redis_url="", workers=1, servers=SERVERS, envoys=envoys)
    return list(rollway_processes(setting))


def test_it_listens_where_a_person_says_if_that_is_an_address() -> None:
    assert [envoy_host({"ROLLWAY_ENVOY_HOST": said}) for said in ("", "0.0.0.0", "::")] == [
        "127.0.0.1",
        "0.0.0.0",
        "::",
    ]
    with pytest.raises(StackError, match="ROLLWAY_ENVOY_HOST must be an address of this machine"):
        envoy_host({"ROLLWAY_ENVOY_HOST": "web.example.com"})


@pytest.mark.parametrize(
    ("said", "names"),
    [("", ["envoy"]), ("on", ["envoy"]), ("2", ["envoy", "envoy2"]), ("off", []), ("OFF", [])],
)
def test_there_are_as_many_envoys_as_a_person_says(tmp_path: Path, said: str, names: list[str]) -> None:
    parts = processes(made_home(tmp_path), envoys_wanted({"ROLLWAY_ENVOY": said}))
    assert [part.name for part in parts if part.name.startswith("envoy")] == names


def test_another_number_of_envoys_is_refused() -> None:
    with pytest.raises(StackError, match="ROLLWAY_ENVOY must be on, 2 or off"):
        envoys_wanted({"ROLLWAY_ENVOY": "10.0.0.1:8080"})


def test_the_bootstrap_is_written_for_its_owner_and_names_node_and_ports(tmp_path: Path) -> None:
    home = made_home(tmp_path)
    part, second = envoy_parts(home, SERVERS, 2)
    file = home.envoy / "envoy.yaml"
    assert str(file) in part.command
    assert (part.server, part.after) == (True, ("api",))
    assert '"edge-1"' in file.read_text()
    assert '"edge-1-2"' in (home.envoy / "envoy2.yaml").read_text()
    assert second.address == part.address, "the system gives each connection to one of them"
    assert file.stat().st_mode & 0o777 == 0o600


def test_workers_take_from_every_queue_of_their_host(tmp_path: Path) -> None:
    (worker,) = (part for part in processes(made_home(tmp_path), envoys=0) if part.name == "worker1")
    assert "-Q" not in worker.command


@pytest.fixture
def answering() -> Iterator[tuple[int, list[int]]]:
    """The port of a server that answers with the last number of the list."""
    answers = [503]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(answers[-1])
            self.end_headers()
            self.wfile.write(b"HTTP/1.1 200 OK")

    with own_server(Handler) as server:
        yield server.port, answers


def test_an_http_part_is_ready_when_it_answers_200(answering: tuple[int, list[int]], tmp_path: Path) -> None:
    port, answers = answering
    ready = Ready("http", f"http://127.0.0.1:{port}/ready")
    assert not is_ready(ready, tmp_path, 0)
    answers.append(200)
    assert is_ready(ready, tmp_path, 0)
    assert not is_ready(Ready("http", f"http://127.0.0.1:{free_port()}/ready"), tmp_path, 0)


@pytest.mark.e2e
def test_replicas_end_before_the_proxy_that_carries_their_answers(tmp_path: Path) -> None:
    home = made_home(tmp_path)
    children = [psutil.Popen(["sleep", "100"]) for _ in range(4)]
    servers = {"postgres": True, "api": False, "worker1": False, "envoy": True}
    parts = [
        PartState(name=name, condition="running", server=server, process=identify(child.pid))
        for (name, server), child in zip(servers.items(), children, strict=True)
    ]
    seen: list[str] = []
    stop_in_order(home, parts, lambda part: seen.append(part.name), lambda _: seen.append("replicas"))
    for child in children:
        child.wait()
    assert seen == ["api", "worker1", "replicas", "envoy", "postgres"]


@pytest.mark.e2e
def test_of_the_two_proxies_of_a_whole_stack_one_answers_while_a_killed_one_comes_back(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    home = Home(private / ".rollway")
    said: list[Notice] = []
    try:
        status = up(UpRequest(home=home, environ={**ISOLATED, "ROLLWAY_ENVOY": "2"}, workers=1), said.append)
        parts = {part.name: part for part in status.parts}
        assert {part.state for part in parts.values()} == {"running"}
        envoy = parts["envoy"]
        assert "no deployment is reached" in plain_http.get(f"{envoy.address}/nope").text
        assert plain_http.get(f"{parts['api'].address}/healthz").status_code == 200
        settings, flower = load_settings(home), parts["flower"].address
        assert settings
        logins = (None, ("rollway", "guessed"), ("rollway", settings.flower_password))
        assert [plain_http.get(f"{flower}/tasks", auth=login).status_code for login in logins] == [401, 401, 200]
        assert settings.flower_password not in " ".join(psutil.Process(parts["flower"].pid).cmdline())
        assert home.envoy_admin().stat().st_mode & 0o777 == 0o600
        assert home.envoy.stat().st_mode & 0o777 == 0o700
        assert _ask(home.envoy_admin(), "GET", "/ready").strip() == "LIVE"
        for method, closed in (("GET", "/config_dump"), ("POST", "/quitquitquit")):
            assert "not allowed" in _ask(home.envoy_admin(), method, closed)

        psutil.Process(envoy.pid).send_signal(signal.SIGKILL)
        answers = [_said_by(envoy.address) for _ in range(200)]
        assert sum("no deployment" not in answer for answer in answers) <= 5, "what was in flight while it died"
        eventually(lambda: _envoy(home) not in (None, envoy.pid))
        eventually(lambda: "no deployment" in _said_by(envoy.address))
        assert any(home.envoy.glob("handover_*"))
    finally:
        down(home, said.append, lambda _: None)
    stopped = [notice.part for notice in said if notice.text == "stopped"]
    assert stopped[-4:] == ["envoy2", "envoy", "valkey", "postgres"]
    assert read_state(home) is None
    assert not any(home.envoy.glob("handover_*"))


def _envoy(home: Home) -> int | None:
    return next(part.pid for part in stack_status(home).parts if part.name == "envoy")


def _page(home: Home, path: str) -> str:
    try:
        return _ask(home.envoy_admin(), "GET", path)
    except OSError:
        return ""


def _said_by(address: str) -> str:
    try:
        return plain_http.get(f"{address}/nope").text
    except httpx.TransportError:
        return ""


@pytest.mark.e2e
def test_an_envoy_that_finds_no_server_is_not_called_ready(tmp_path: Path) -> None:
    """Its listener waits for a table, or for 15 s: requests must not be refused for want of one at every start."""
    home = made_home(tmp_path)
    ports = Ports(api=free_port(), envoy=free_port())
    (part,) = envoy_parts(home, ServerSettings(ports=ports), 1)
    child = Child(part, home.log("envoy"))
    child.start(lambda: None)
    try:
        eventually(lambda: _page(home, "/ready") != "")
        child.check()
        assert not child.ready
    finally:
        process = child.state().process
        assert process is not None
        psutil.Process(process.pid).kill()
        child.reap()
        child.ports.close()
