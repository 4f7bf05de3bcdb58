"""The compose file, as far as it can be tried without Docker: it holds together, and its words for Envoy are right."""

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import main
from stack.home import Home, project_root
from stack.parts.envoy import envoy_part
from stack.ports import free_port
from stack.settings import Ports, ServerSettings
from stack.supervisor.child import Child
from stack.supervisor.ready import is_ready
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load((project_root() / "docker-compose.yml").read_text())


def test_whatever_a_service_names_is_there(compose: Any) -> None:
    services, volumes, networks = compose["services"], compose["volumes"], {*compose["networks"], "default"}
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= set(services), name
        assert {volume.partition(":")[0] for volume in service.get("volumes", [])} <= set(volumes), name
        assert set(service.get("networks", [])) <= networks, name
        shared = service.get("network_mode", "none").removeprefix("service:")
        assert shared == "none" or shared in services, name
        assert "network_mode" not in service or not {"networks", "ports"} & set(service), name


def test_nothing_but_envoy_and_flower_is_published_and_both_to_this_machine_only(compose: Any) -> None:
    published = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert published == {
        "host": ["127.0.0.1:${ENVOY_PORT:-8080}:8080"],
        "flower": ["127.0.0.1:${FLOWER_PORT:-5555}:5555"],
    }


def test_the_bootstrap_is_one_that_envoy_takes(
    compose: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, _, file = compose["services"]["envoy-bootstrap"]["command"][2].partition(" > ")
    assert main(shlex.split(command)[1:]) == 0
    text = capsys.readouterr().out
    assert file in compose["services"]["envoy"]["command"]
    port = compose["services"]["host"]["ports"][0].rpartition(":")[2]
    assert f"port_value: {port}" in text
    (tmp_path / "bootstrap.yaml").write_text(text)
    envoy = envoy_part(made_home(tmp_path), ServerSettings(ports=Ports(envoy=1, envoy_admin=2))).command[0]
    words = [envoy, "--mode", "validate", "--log-level", "error", "--config-path", str(tmp_path / "bootstrap.yaml")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr


def made_home(folder: Path) -> Home:
    home = Home(folder / ".rollway")
    home.create()
    return home


@pytest.fixture
def admin_port(tmp_path: Path) -> Iterator[int]:
    """Of an Envoy that has all it needs, and so is live."""
    home, port = made_home(tmp_path), free_port()
    part = envoy_part(home, ServerSettings(ports=Ports(envoy=1, envoy_admin=port)))
    bare = {"admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}}
    (home.envoy / "bootstrap.yaml").write_text(yaml.safe_dump(bare))
    child = Child(part, home.log("envoy"))
    child.start(lambda: None)
    eventually(lambda: is_ready(part.ready, child.log, 0))
    yield port
    process = child.state().process
    assert process is not None
    child._process.kill()  # type: ignore[union-attr]
    child.reap()


@pytest.mark.e2e
def test_the_health_check_of_envoy_tells_live_from_gone(compose: Any, admin_port: int) -> None:
    _, *words = compose["services"]["envoy"]["healthcheck"]["test"]

    def healthy(port: int) -> bool:
        asked = [word.replace("9901", str(port)) for word in words]
        return subprocess.run(asked, capture_output=True, check=False, timeout=10).returncode == 0

    assert healthy(admin_port)
    assert not healthy(free_port())
