"""The pages and the documents for programs, by the names of their files."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from api.people.resources.openapi import openapi
from tools.reference.command_line import command_line_page
from tools.reference.contract import contract_page
from tools.reference.environment import environment_page
from tools.reference.events import events_page
from tools.reference.file import file_page
from tools.reference.metrics import metrics_page
from tools.reference.tasks import tasks_document, tasks_page

FOLDER = "docs/reference"

PAGES: dict[str, Callable[[], str]] = {
    "command-line.md": command_line_page,
    "contract.md": contract_page,
    "environment.md": environment_page,
    "events.md": events_page,
    "file.md": file_page,
    "metrics.md": metrics_page,
    "tasks.md": tasks_page,
}

MADE = "build/reference"
"""Where documents for programs are made; git holds none of them."""

DOCUMENTS: dict[str, Callable[[], Mapping[str, Any]]] = {"openapi.json": openapi, "tasks.json": tasks_document}


def written(document: Mapping[str, Any]) -> str:
    """The text of a document's file."""
    return json.dumps(document, indent=1) + "\n"
