"""A real Prometheus for tests: it scrapes quickly, and knows the alert rules with their waits made short."""

import os
import re
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from stack.home.folder import project_root
from tests.support.proxies import plain_http
from tests.support.stack.ports import free_port
from tests.support.stack.server_process import Process

RULES = project_root() / "stack/monitoring/rollway.rules.yml"
MISSING = "NO PROMETHEUS, SO NO ALERT IS MADE TO FIRE HERE: 'make prometheus' unpacks that of Debian, without root"
SCRAPE, RANGE = "2s", "20s"
"""How often it asks, and over how long it compares: with one answer in five a busy machine still shows an increase."""


def program(name: str) -> Path | None:
    """A program, such as `promtool` or `amtool`: on the PATH, or where `make prometheus` puts them."""
    places = f"{os.environ.get('PATH', '')}{os.pathsep}{Path(sys.prefix) / 'prometheus/usr/bin'}"
    found = shutil.which(name, path=places)
    return Path(found) if found else None


def alertmanager() -> list[str] | None:
    """The command of an Alertmanager. Debian's needs a file of its package, which may be unpacked elsewhere."""
    found = program("prometheus-alertmanager")
    templates = Path("/usr/share/prometheus/alertmanager")
    if found is None or templates.exists():
        return [str(found)] if found else None
    unpacked = found.parents[2] / templates.relative_to("/")
    place = f"mount -t tmpfs none /usr/share && mkdir -p {templates} && cp {unpacked}/*.tmpl {templates}/"
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", f'{place} && exec {found} "$@"', "sh"]


def rules() -> list[dict[str, Any]]:
    """The alerts of the file, in its order."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def in_a_hurry(text: str) -> str:
    """The rules with `for` left out, and ranges and offsets of `RANGE`: what they ask is the same."""
    without_waits = re.sub(r"^ +(for|keep_firing_for): .*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"offset \d+[smhd]", f"offset {RANGE}", re.sub(r"\[\d+[smhd]\]", f"[{RANGE}]", without_waits))


class Prometheus:
    """It scrapes these jobs, and watches the rules."""

    def __init__(self, prometheus: Path, folder: Path, jobs: Sequence[Mapping[str, Any]]) -> None:
        port = free_port()
        (folder / "rollway.rules.yml").write_text(in_a_hurry(RULES.read_text(encoding="utf-8")), encoding="utf-8")
        configuration = {
            "global": {"scrape_interval": SCRAPE, "scrape_timeout": SCRAPE, "evaluation_interval": "500ms"},
            "rule_files": ["rollway.rules.yml"],
            "scrape_configs": list(jobs),
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
        command = [
            str(prometheus),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        self.process = Process(command, port, folder / "prometheus.log", f"http://127.0.0.1:{port}/-/ready")

    def ask(self, expression: str) -> list[dict[str, Any]]:
        """What an expression comes to now."""
        answer = plain_http.get(f"{self.process.url}/api/v1/query", params={"query": expression}).json()
        assert answer["status"] == "success", f"{expression}: {answer}"
        return list(answer["data"]["result"])

    def has_fired(self, alert: str, labels: Mapping[str, str], since: float) -> bool:
        """Whether an alert of this name and these labels has fired since that monotonic time."""
        of = {"alertname": alert, "alertstate": "firing", **labels}
        selector = ", ".join(f'{name}="{value}"' for name, value in of.items())
        seconds = max(1, int(time.monotonic() - since))
        return bool(self.ask(f"count_over_time(ALERTS{{{selector}}}[{seconds}s])"))

    def firing(self) -> list[dict[str, Any]]:
        """The alerts that fire now, with labels and annotations."""
        alerts = plain_http.get(f"{self.process.url}/api/v1/alerts").json()["data"]["alerts"]
        return [found for found in alerts if found["state"] == "firing"]

    def is_over(self, alert: str, labels: Mapping[str, str]) -> bool:
        """Whether none of this name and these labels fires now."""
        wanted = {"alertname": alert, **labels}.items()
        return not any(wanted <= found["labels"].items() for found in self.firing())
