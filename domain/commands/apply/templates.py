"""The texts that a new deployment begins with: each is a whole file for `rollway apply`, with the fields to fill in."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from domain.commands.apply.document import Document
from domain.commands.fields import CommandField, field_at

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9/._{}@%=+:~-]*( [A-Za-z0-9/._{}@%=+:~-]+)*")
_NO_TEXT = re.compile("true|false|yes|no|on|off|null|y|n", re.IGNORECASE)
"""What YAML makes another value of."""


@dataclass(frozen=True, slots=True)
class TemplateField:
    """A field that a person fills in. `line`: the text before its value, in the one line of the template that has it.

    `label`: its name for people.
    """

    label: str
    line: str
    field: CommandField


@dataclass(frozen=True, slots=True)
class Template:
    """A kind of deployment. `what`: what it is for, in a sentence. `text`: the file, in which each field has a line."""

    name: str
    label: str
    what: str
    text: str
    fields: tuple[TemplateField, ...]


def filled(text: str, values: Mapping[str, str | int]) -> str:
    """The text with these values behind the beginnings of their lines."""
    return "".join(f"{_with_value(line, values)}\n" for line in text.splitlines())


def _with_value(line: str, values: Mapping[str, str | int]) -> str:
    return next((f"{start}{_scalar(value)}" for start, value in values.items() if line.startswith(start)), line)


def _scalar(value: str | int) -> str:
    """The value as YAML has it in one line."""
    if not isinstance(value, str):
        return str(value)
    is_plain = _PLAIN.fullmatch(value) and not _NO_TEXT.fullmatch(value) and ": " not in value and value[-1] != ":"
    return value if is_plain else json.dumps(value)


def _asks(*paths: tuple[str, str]) -> tuple[TemplateField, ...]:
    return tuple(
        TemplateField(label, f"{'  ' * path.count('.')}{path.rpartition('.')[2]}: ", field_at(Document, path))
        for path, label in paths
    )


_NAME, _REPLICAS = ("deployment", "Name"), ("replicas", "Replicas")
_COMMAND, _HEALTH = ("revision.command", "Command"), ("revision.health_check.path", "Health check")
_HEAD = """\
deployment: web
replicas: 2
revision:
"""
_PROCESS = f"""{_HEAD}\
  command: python3 /srv/web/serve.py --port {{port}}
  health_check:
    path: /health
    interval_seconds: 1
"""
_PROCESS_FIELDS: Sequence[tuple[str, str]] = (_NAME, _COMMAND, _HEALTH, _REPLICAS)
HTTP_SERVICE = Template(
    "http_service",
    "HTTP service",
    "A program that listens on the port that Rollway gives it; new revisions replace it replica by replica.",
    f"""{_PROCESS}\
policy:
  strategy: rolling_update
  spec: {{max_surge: 1, max_unavailable: 0}}
""",
    _asks(*_PROCESS_FIELDS),
)
TEMPLATES = (
    HTTP_SERVICE,
    Template(
        "container",
        "Container",
        "An image that listens on a port of its own; new revisions replace it replica by replica.",
        f"""{_HEAD}\
  runtime: docker
  docker:
    image: registry.example.com/web:1
    port: 8080
  health_check:
    path: /health
    interval_seconds: 1
policy:
  strategy: rolling_update
  spec: {{max_surge: 1, max_unavailable: 0}}
""",
        _asks(_NAME, ("revision.docker.image", "Image"), ("revision.docker.port", "Port"), _HEALTH, _REPLICAS),
    ),
    Template(
        "blue_green",
        "Blue-green",
        "The new revision comes up whole next to the old one, and gets all requests when a person promotes it.",
        f"""{_PROCESS}\
policy:
  strategy: blue_green
  spec: {{auto_promote: false, scale_down_delay_seconds: 600}}
""",
        _asks(*_PROCESS_FIELDS),
    ),
    Template(
        "canary",
        "Canary",
        "The new revision gets a share of the requests, and a judge compares its answers before it gets more.",
        f"""{_PROCESS}\
policy:
  strategy: canary
  spec:
    steps: [5%, 25%, 50%]
    judge: {{}}
""",
        _asks(*_PROCESS_FIELDS),
    ),
    Template(
        "celery_worker",
        "Celery worker",
        "A worker that gets no requests; it says at its port that it is well, and ends its tasks before it stops.",
        """\
deployment: jobs
replicas: 2
revision:
  command: /srv/jobs/venv/bin/celery -A tasks worker --pool threads --concurrency 4 -n {route}@%h
  working_directory: /srv/jobs
  env: {BROKER: "redis://127.0.0.1:6379/0"}
  health_check:
    path: /
    interval_seconds: 1
  drain: fixed
  drain_seconds: 0
  stop_grace_seconds: 3600
policy:
  strategy: rolling_update
  spec: {max_surge: 1, max_unavailable: 0}
""",
        _asks(_NAME, _COMMAND, ("revision.working_directory", "Working directory"), _HEALTH, _REPLICAS),
    ),
)
"""The templates, in the order in which people are offered them."""
