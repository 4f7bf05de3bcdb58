"""The compose file, as far as it can be tried without Docker: it holds together, and its words for Envoy are right."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis
import yaml

from cli.main import main
from stack.home.folder import project_root
from stack.home.server_settings import Ports, ServerSettings
from stack.part_specs import Ready
from stack.parts.envoy import envoy_parts
from stack.parts.postgres_account import installed_tree
from stack.parts.valkey import valkey_part
from stack.supervisor.child.supervised import Child, is_ready
from tests.support.stack.ports import free_port
from tests.support.stack.small_stack import made_home
from tests.support.stack.waiting import eventually
from traffic.edge_settings import InFront


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load((project_root() / "docker-compose.yml").read_text())


@pytest.fixture(scope="module")
def docker_compose() -> str:
    """The program that reads compose files; it needs no engine for that."""
    program = shutil.which("docker-compose", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if program is None:
        pytest.skip("NO DOCKER COMPOSE HERE: the compose files are read by our own eyes only")
    return program


PASSWORDS = {
    "POSTGRES_PASSWORD": "p@ss:w/o%rd",
    "REDIS_PASSWORD": "abc123",
    "ROLLWAY_PROXY_KEY": "k" * 32,
    "DOCKER_GID": "998",
}


@pytest.mark.parametrize("files", [["docker-compose.yml"], ["docker-compose.yml", "docker-compose.docker.yml"]])
def test_docker_compose_takes_the_files_with_passwords_only(docker_compose: str, files: list[str]) -> None:
    command = [docker_compose, *(word for file in files for word in ("--file", file)), "config", "--quiet"]

    def taken(environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        given = {"PATH": os.environ["PATH"], "COMPOSE_ENV_FILES": "/dev/null", "DOCKER_GID": "998", **environment}
        return subprocess.run(
            command, cwd=project_root(), env=given, capture_output=True, text=True, check=False, timeout=900
        )

    assert (taken(PASSWORDS).returncode, taken(PASSWORDS).stderr) == (0, "")
    assert 'is missing, run "make env" once' in taken({}).stderr


def test_the_stores_are_the_versions_that_everything_here_is_tested_with(compose: Any, tmp_path: Path) -> None:
    def version(*command: str | Path) -> str:
        said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
        return str(re.findall(r"\d+\.\d+(?:\.\d+)?", said)[0])

    images = {name: compose["services"][name]["image"] for name in ("postgres", "redis")}
    assert images == {
        "postgres": f"postgres:{version(installed_tree() / 'bin/postgres')}",
        "redis": f"valkey/valkey:{version(valkey_part(tmp_path, '').command[0])}",
    }


def test_redis_has_its_password_and_no_command_line_shows_it(compose: Any, tmp_path: Path) -> None:
    service, port, password = compose["services"]["redis"], free_port(), PASSWORDS["REDIS_PASSWORD"]
    program = Path(valkey_part(tmp_path, "").command[0])
    for name, text in (("docker-entrypoint.sh", 'exec "$@"'), ("valkey-server", f'exec {program} "$@"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    *shell, script = service["command"]
    given = script.replace("$$", "$").replace("valkey-server ", f"valkey-server --port {port} ")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "REDISCLI_AUTH": password}
    server = subprocess.Popen([*shell, given], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL)
    try:
        with redis.Redis(port=port, password=password) as known, redis.Redis(port=port) as stranger:
            eventually(lambda: answers(known), what="Valkey answers")
            assert known.config_get("appendonly", "maxmemory-policy") == {
                "appendonly": "yes",
                "maxmemory-policy": "noeviction",
            }
            with pytest.raises(redis.AuthenticationError):
                stranger.ping()
        process = psutil.Process(server.pid)
        assert process.name() == "valkey-server"
        assert password not in " ".join([*service["command"], *process.cmdline()])
    finally:
        server.kill()
        server.wait()


def test_make_env_makes_passwords_once_and_keeps_what_is_there(tmp_path: Path) -> None:
    shutil.copy(project_root() / "Makefile", tmp_path)
    (tmp_path / ".env").write_text("ENVOY_PORT=8081\nREDIS_PASSWORD=mine\n")
    (tmp_path / ".env").chmod(0o600)
    for _ in range(2):
        subprocess.run(["make", "env"], cwd=tmp_path, check=True, capture_output=True)
    port, mine, made, key, seal = (tmp_path / ".env").read_text().splitlines()
    assert (port, mine) == ("ENVOY_PORT=8081", "REDIS_PASSWORD=mine")
    names = ("POSTGRES_PASSWORD", "ROLLWAY_PROXY_KEY", "ROLLWAY_CERTIFICATE_KEY")
    assert re.fullmatch(" ".join(f"{name}=[0-9a-f]{{48}}" for name in names), f"{made} {key} {seal}")
    (tmp_path / ".env").unlink()
    subprocess.run(["make", "env"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600


def test_whatever_a_service_names_is_there(compose: Any) -> None:
    services, volumes, networks = compose["services"], compose["volumes"], {*compose["networks"], "default"}
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= set(services), name
        assert {volume.partition(":")[0] for volume in service.get("volumes", [])} <= set(volumes), name
        assert set(service.get("networks", [])) <= networks, name


def test_no_service_lives_in_another_so_each_may_be_restarted_alone(compose: Any) -> None:
    shared = {"pid", "ipc", "network_mode"}
    joined = {service[key] for service in compose["services"].values() for key in shared & set(service)}
    assert joined == {"none"}


def test_one_service_builds_the_image_that_the_others_run(compose: Any) -> None:
    ours = {name: service for name, service in compose["services"].items() if service["image"].startswith("rollway:")}
    assert [name for name, service in ours.items() if "build" in service] == ["migrate"]
    assert {service["pull_policy"] for service in ours.values()} == {"never"}


def test_every_service_has_bounds_and_no_privileges(compose: Any) -> None:
    for name, service in compose["services"].items():
        assert service["logging"]["options"]["max-size"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        if service["image"].startswith("rollway:"):
            assert (service["cap_drop"], bool(service["mem_limit"]), bool(service["pids_limit"])) == (
                ["ALL"],
                True,
                True,
            )


def test_a_first_start_has_a_minute_before_its_health_counts_and_migrations_wait_for_postgres(compose: Any) -> None:
    waited_for = {
        name
        for service in compose["services"].values()
        for name, how in service.get("depends_on", {}).items()
        if how["condition"] == "service_healthy"
    }
    seconds = {name: _patience(compose["services"][name]["healthcheck"]) for name in {*waited_for, "envoy", "people"}}
    assert {name: patience for name, patience in seconds.items() if patience < 60} == {}
    assert compose["services"]["migrate"]["restart"] == "on-failure:5"


def answers(server: redis.Redis) -> bool:
    try:
        return bool(server.ping())
    except redis.ConnectionError:
        return False


def _patience(check: Mapping[str, Any]) -> int:
    """So many seconds a container may take to be healthy for the first time."""
    return int(check.get("start_period", "0s")[:-1]) + int(check["interval"][:-1]) * int(check["retries"])


def test_envoy_flower_and_the_http_api_are_published_and_all_to_this_machine_only(compose: Any) -> None:
    published = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert published == {
        "envoy": [
            "${ENVOY_BIND:-127.0.0.1}:${ENVOY_PORT:-8080}:8080",
            "${ENVOY_BIND:-127.0.0.1}:${ENVOY_TLS_PORT:-8443}:8443",
        ],
        "flower": ["127.0.0.1:${FLOWER_PORT:-5555}:5555"],
        "people": ["${PEOPLE_BIND:-127.0.0.1}:${PEOPLE_PORT:-7072}:7072"],
    }


def test_the_bootstrap_and_the_server_for_proxies_are_told_alike_what_is_in_front(compose: Any) -> None:
    names = {str(field.validation_alias) for field in InFront.model_fields.values()}
    told = [compose["services"][name]["environment"] for name in ("envoy-bootstrap", "api")]
    of_bootstrap, of_server = ({name: its.get(name) for name in names} for its in told)
    assert of_bootstrap == of_server
    assert all(str(of_server[name]).startswith(f"${{{name}:-") for name in names)
    assert all(f"#{name}=" in (project_root() / ".env.example").read_text() for name in names)


def test_what_is_secret_is_ignored_by_git() -> None:
    assert ".env" in (project_root() / ".gitignore").read_text().splitlines()


def test_the_bootstrap_is_one_that_envoy_takes(
    compose: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, _, file = compose["services"]["envoy-bootstrap"]["command"][2].partition(" > ")
    assert main(shlex.split(command)[1:]) == 0
    text = capsys.readouterr().out
    assert file in compose["services"]["envoy"]["command"]
    port = compose["services"]["envoy"]["ports"][0].rpartition(":")[2]
    listening = [
        each.get("address", {}).get("socket_address", {})
        for each in yaml.safe_load(text)["static_resources"]["listeners"]
    ]
    assert int(port) in [address.get("port_value") for address in listening]
    (tmp_path / "bootstrap.yaml").write_text(text)
    (envoy,) = envoy_parts(made_home(tmp_path), ServerSettings(ports=Ports(envoy=1)), 1)
    words = [
        envoy.command[0],
        "--mode",
        "validate",
        "--log-level",
        "error",
        "--config-path",
        str(tmp_path / "bootstrap.yaml"),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def admin_port(tmp_path: Path) -> Iterator[int]:
    """Of an Envoy that has all it needs, and so is live."""
    home, port = made_home(tmp_path), free_port()
    (part,) = envoy_parts(home, ServerSettings(ports=Ports(envoy=1)), 1)
    bare = {"admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}}
    (home.envoy / "envoy.yaml").write_text(yaml.safe_dump(bare))
    child = Child(part, home.log("envoy"))
    child.start(lambda: None)
    ready = Ready("http", f"http://127.0.0.1:{port}/ready")
    eventually(lambda: is_ready(ready, child.log, 0))
    yield port
    process = child.state().process
    assert process is not None
    child._process.kill()  # type: ignore[union-attr]
    child.reap()
    child.ports.close()


@pytest.mark.e2e
def test_the_health_check_of_envoy_tells_live_from_gone(compose: Any, admin_port: int) -> None:
    _, *words = compose["services"]["envoy"]["healthcheck"]["test"]

    def healthy(port: int) -> bool:
        asked = [word.replace("9901", str(port)) for word in words]
        return subprocess.run(asked, capture_output=True, check=False, timeout=10).returncode == 0

    assert healthy(admin_port)
    assert not healthy(free_port())
