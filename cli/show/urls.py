"""The addresses of this machine's stack. Without the reads of the database, which `rollway up` would wait for."""

import os
from urllib.parse import urlsplit

from cli.remote import remote
from domain.traffic.entrances import PAGE_HOST
from stack.home.folder import find_home
from stack.stack_status import stack_status


def envoy_address() -> str:
    """http://127.0.0.1:port of the Envoy of the stack that runs here; empty when none does, or for another server."""
    if remote() is not None:
        return ""
    parts = stack_status(find_home(os.environ)).parts
    return next((part.address for part in parts if part.name == "envoy" and part.pid is not None), "")


def page_address() -> str:
    """http://rollway.localhost:port of the page of the stack that runs here; empty when none does."""
    parts = stack_status(find_home(os.environ)).parts
    people = next((part.address for part in parts if part.name == "people"), "")
    return f"http://{PAGE_HOST}:{urlsplit(people).port}" if people else ""
