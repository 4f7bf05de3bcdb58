"""`rollway envoy-bootstrap`, `proxy-token` and `scrape-config`."""

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest
import yaml

from domain.traffic.nodes import token_of
from runtime.machine.identity import identify
from stack.home.folder import Home
from stack.home.server_settings import Ports, ServerSettings, choose_settings
from stack.home.stack_state import PartState, StackState, write_state
from stack.parts.processes import measured_processes
from tests.cli.conftest import Rollway
from tests.support.faults.prometheus import RULES, program


def test_the_bootstrap_is_printed_as_yaml_and_as_json(rollway: Rollway) -> None:
    asked = ("--node-id", "edge-1", "--listen", "0.0.0.0:80", "--admin", "[::1]:9901", "--xds", "rollway.internal:7073")
    said = yaml.safe_load(rollway("envoy-bootstrap", *asked).out)
    assert said == json.loads(rollway("envoy-bootstrap", *asked, "--json").out)
    assert said["node"]["id"] == "edge-1"
    text = json.dumps(said)
    assert all(word in text for word in ("rollway.internal", "7073", "9901", '"::1"'))


def test_a_token_is_made_from_the_key_of_the_environment_or_of_the_stack_that_was_made_here(
    rollway: Rollway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLWAY_HOME", str(tmp_path))
    refused = rollway("proxy-token", "edge-1")
    assert (refused.code, "ROLLWAY_PROXY_KEY" in refused.err) == (2, True)
    assert json.loads(rollway("envoy-bootstrap", "--json").out)["node"]["metadata"] == {"rollway_stats_port": 9902}

    (home := Home(tmp_path)).create()
    made = choose_settings(home, Ports(), lambda _: None)
    assert rollway("proxy-token", "edge-1").out.strip() == token_of("edge-1", made.proxy_key)

    monkeypatch.setenv("ROLLWAY_PROXY_KEY", key := "k" * 32)
    told = json.loads(rollway("proxy-token", "edge-1", "--json").out)
    assert told == {"node_id": "edge-1", "token": token_of("edge-1", key)}
    bootstrap = json.loads(rollway("envoy-bootstrap", "--node-id", "edge-1", "--json").out)
    assert bootstrap["node"]["metadata"]["rollway_token"] == told["token"]
    assert "a node id is" in rollway("proxy-token", "edge 1").err
    monkeypatch.setenv("ROLLWAY_PROXY_KEY", "short")
    refused = rollway("proxy-token", "edge-1")
    assert (refused.code, "at least 32 characters" in refused.err, "short" in refused.err) == (2, True, False)


def test_a_prometheus_is_told_the_targets_of_the_stack_that_runs_and_a_token(
    rollway: Rollway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLWAY_HOME", str(tmp_path))
    (home := Home(tmp_path)).create()
    made = choose_settings(home, Ports(), lambda _: None, with_metrics=measured_processes(1))
    here = identify(os.getpid())
    assert here
    addresses = {"api": "http://127.0.0.1:4711", "flower": "http://127.0.0.1:4712"}
    addresses["people"] = "http://127.0.0.1:4712"
    addresses |= {name: f"http://127.0.0.1:{port}/metrics" for name, port in made.metrics.items()}
    parts = tuple(
        PartState(name=name, condition="running", process=here, address=address) for name, address in addresses.items()
    )
    write_state(home, StackState(supervisor=here, phase="running", database_url="", redis_url="", parts=parts))
    said = yaml.safe_load(rollway("scrape-config").out)
    assert said == json.loads(rollway("scrape-config", "--json").out)
    assert said["global"]["evaluation_interval"] == "5s", "alerts wait for 10 s and more, not for Prometheus' minute"
    assert said["alerting"]["alertmanagers"]
    processes, fleet = said["scrape_configs"]
    ours = [f"127.0.0.1:{made.metrics[name]}" for name in ("beat", "worker1")]
    labels = {"host": socket.gethostname()}
    targets = ["127.0.0.1:4711", "127.0.0.1:4712", *ours]
    assert processes["static_configs"] == [{"targets": targets, "labels": labels}]
    assert fleet["static_configs"] == [{"targets": ["127.0.0.1:4711"], "labels": labels}]
    assert fleet["honor_labels"], "hosts that the fleet's numbers name are not this one"
    (home.root / "rollway.rules.yml").write_text(RULES.read_text(encoding="utf-8"), encoding="utf-8")
    (home.root / "prometheus.yml").write_text(yaml.safe_dump(said), encoding="utf-8")
    if promtool := program("promtool"):
        checked: list[str | Path] = [promtool, "check", "config", home.root / "prometheus.yml"]
        told = subprocess.run(checked, capture_output=True, text=True, check=False)
        assert told.returncode == 0, told.stdout + told.stderr
    assert fleet["basic_auth"] == {"username": "prometheus", "password": token_of("prometheus", made.proxy_key)}


def test_the_bootstrap_asks_the_server_of_the_stack_that_runs(
    rollway: Rollway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLWAY_HOME", str(tmp_path))
    assert '"port_value": 7073' in rollway("envoy-bootstrap", "--json").out
    home = Home(tmp_path)
    home.create()
    begun = ServerSettings(sockets=str(tmp_path))
    made = choose_settings(home, Ports(), lambda _: None, initial=lambda _: begun)
    here = identify(os.getpid())
    assert here
    part = PartState(name="api", condition="running", process=here, address="http://127.0.0.1:4711")
    write_state(home, StackState(supervisor=here, phase="running", database_url="", redis_url="", parts=(part,)))
    printed = rollway("envoy-bootstrap", "--json").out
    assert f'"path": "{made.named_sockets.discovery}"' in printed
    assert '"port_value": 7073' not in printed
    assert '"port_value": 7099' in rollway("envoy-bootstrap", "--json", "--xds", "127.0.0.1:7099").out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--listen", "8080"], "--listen must be an address and a port such as 127.0.0.1:8080, not '8080'"),
        (["--listen", "localhost:8080"], "--listen must be an IP address and a port such as 0.0.0.0:8080"),
        (["--admin", "127.0.0.1:0"], "--admin must be an address and a port"),
        (["--xds", "rollway:http"], "--xds must be an address and a port"),
    ],
)
def test_a_wrong_address_is_named_with_its_option(rollway: Rollway, arguments: list[str], sentence: str) -> None:
    ended = rollway("envoy-bootstrap", *arguments)
    assert ended.code == 2
    assert sentence in ended.err
