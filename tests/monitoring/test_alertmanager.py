"""A real Alertmanager with the file of the repository: of several alerts of one fault one is told."""

import json
import queue
import re
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from stack.home.folder import project_root
from tests.support.faults.prometheus import alertmanager, program, rules
from tests.support.proxies import plain_http
from tests.support.proxies.own_servers import own_server
from tests.support.stack.ports import free_port
from tests.support.stack.server_process import Process
from tests.support.stack.waiting import eventually

FILE = project_root() / "stack/monitoring/alertmanager.yml"
MISSING = "NO ALERTMANAGER, SO NOTHING IS TOLD HERE: 'make prometheus' unpacks that of Debian, without root"
Told = set[tuple[str, ...]]
"""What was told: where, the alert, and its host or deployment."""


def test_its_file_names_only_alerts_that_there_are_and_amtool_understands_it() -> None:
    there = {rule["alert"] for rule in rules()}
    assert set(re.findall(r"Rollway[A-Z]\w+", FILE.read_text(encoding="utf-8"))) <= there
    if amtool := program("amtool"):
        checked = subprocess.run([amtool, "check-config", FILE], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr


@pytest.fixture
def told() -> Iterator[tuple[str, "queue.Queue[tuple[str, dict[str, Any]]]"]]:
    """A pager and a place for tickets: what comes there."""
    came: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.put((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(200)
            self.end_headers()

    with own_server(Receiver) as server:
        yield f"http://127.0.0.1:{server.port}", came


@pytest.mark.parametrize(
    ("fires", "expected"),
    [
        pytest.param(
            [
                {"alertname": "RollwayHostDown", "severity": "page", "host": "a"},
                {"alertname": "RollwayTargetDown", "severity": "page", "host": "a", "instance": "a:7071"},
                {"alertname": "RollwayTargetDown", "severity": "page", "host": "a", "instance": "a:7072"},
                {"alertname": "RollwayTargetDown", "severity": "page", "host": "b", "instance": "b:7071"},
            ],
            {("/page", "RollwayHostDown", "a"), ("/page", "RollwayTargetDown", "b")},
            id="a host is dead, and a worker of another one",
        ),
        pytest.param(
            [
                {"alertname": "RollwayServiceDown", "severity": "page", "deployment": "web"},
                {"alertname": "RollwayReplicasMissing", "severity": "page", "deployment": "web"},
                {"alertname": "RollwayDegraded", "severity": "page", "deployment": "web"},
                {"alertname": "RollwayCallersFail", "severity": "page", "deployment": "web"},
                {"alertname": "RollwayCallersFailSlowly", "severity": "ticket", "deployment": "web"},
                {"alertname": "RollwayCallersFailSlowly", "severity": "ticket", "deployment": "mail"},
            ],
            {("/page", "RollwayServiceDown", "web"), ("/ticket", "RollwayCallersFailSlowly", "mail")},
            id="a service serves nothing, and another one fails now and then",
        ),
        pytest.param(
            [
                {"alertname": "RollwayNoWorker", "severity": "page"},
                {"alertname": "RollwayTargetDown", "severity": "page", "host": "a", "instance": "a:7071"},
                {"alertname": "RollwayMarksOverdue", "severity": "page"},
                {"alertname": "RollwayQueueLong", "severity": "ticket", "queue_name": "lifecycle"},
                {"alertname": "RollwayTasksFail", "severity": "ticket"},
            ],
            {("/page", "RollwayNoWorker", ""), ("/ticket", "RollwayTasksFail", "")},
            id="nobody works",
        ),
    ],
)
def test_one_fault_is_told_once(
    tmp_path: Path,
    told: tuple[str, "queue.Queue[tuple[str, dict[str, Any]]]"],
    fires: list[dict[str, str]],
    expected: Told,
) -> None:
    found = alertmanager()
    if found is None:
        pytest.skip(MISSING)
    url, came = told
    text = re.sub(r"group_wait: \d+s", "group_wait: 1s", FILE.read_text(encoding="utf-8"))
    (tmp_path / "alertmanager.yml").write_text(text.replace("http://127.0.0.1:9095", url), encoding="utf-8")
    port = free_port()
    command = [
        *found,
        f"--config.file={tmp_path / 'alertmanager.yml'}",
        f"--storage.path={tmp_path}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    process = Process(command, port, tmp_path / "log", f"http://127.0.0.1:{port}/-/ready")
    process.start()
    try:
        plain_http.post(
            f"{process.url}/api/v2/alerts", json=[{"labels": labels} for labels in fires]
        ).raise_for_status()
        seen: Told = set()
        eventually(partial(_takes, came, seen, expected), 60, f"{expected} to be told")
        with pytest.raises(queue.Empty):
            came.get(timeout=3)
        assert seen == expected
    finally:
        process.end(kill=True)


def _takes(came: "queue.Queue[tuple[str, dict[str, Any]]]", seen: Told, expected: Told) -> bool:
    while not came.empty():
        path, group = came.get()
        seen |= {(path, *_named(alert["labels"])) for alert in group["alerts"]}
    return expected <= seen


def _named(labels: dict[str, str]) -> Sequence[str]:
    return labels["alertname"], labels.get("host", labels.get("deployment", ""))
