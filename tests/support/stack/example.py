"""The example for services that have Celery and not Rollway, run where there is only what its first line installs."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from stack.home.folder import project_root

EXAMPLE = project_root() / "examples" / "enqueue_activate_revision.py"


def run_example(redis_url: str, folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """In that folder, with nothing in its environment but PATH, REDIS_URL and the variables."""
    said = re.search(r"pip install '(.+)'", EXAMPLE.read_text(encoding="utf-8"))
    assert said
    site = folder / "site"
    if not site.exists():
        site.mkdir()
        for name in installed_by(said[1]):
            _link(name, site)
    environment = {"PATH": os.environ["PATH"], "REDIS_URL": redis_url, "PYTHONPATH": str(site), **variables}
    command = [sys.executable, "-S", str(EXAMPLE), *arguments]  # without the packages of the tests
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=900
    )


def installed_by(asked: str) -> set[str]:
    """What pip would bring for it, by the requirements of what is installed here."""
    found: set[str] = set()
    waiting = [Requirement(asked)]
    seen = set()
    while waiting:
        requirement = waiting.pop()
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        found.add(key[0])
        waiting += _needed(requirement)
    return found


def _needed(requirement: Requirement) -> Iterator[Requirement]:
    for line in distribution(requirement.name).requires or []:
        needed = Requirement(line)
        marker = needed.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras)):
            yield needed


def _link(name: str, site: Path) -> None:
    found = distribution(name)
    for top in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
        (site / top).symlink_to(str(found.locate_file(top)))
