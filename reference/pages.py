"""The pages, by the names of their files."""

import json
from collections.abc import Callable

from api.people.resources.openapi import openapi
from reference.command_line import command_line_page
from reference.environment import environment_page
from reference.events import events_page
from reference.file import file_page
from reference.metrics import metrics_page
from reference.tasks import tasks_page, tasks_schema


def openapi_document() -> str:
    """What docs/reference/openapi.json holds: what the server for people shows at /openapi.json."""
    return json.dumps(openapi(), indent=1) + "\n"


FOLDER = "docs/reference"

PAGES: dict[str, Callable[[], str]] = {
    "command-line.md": command_line_page,
    "environment.md": environment_page,
    "events.md": events_page,
    "file.md": file_page,
    "metrics.md": metrics_page,
    "openapi.json": openapi_document,
    "tasks.json": tasks_schema,
    "tasks.md": tasks_page,
}
