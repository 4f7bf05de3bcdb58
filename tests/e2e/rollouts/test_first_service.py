"""docs/first-service.md, done by somebody who types what the page says and compares what it shows."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stack.home.folder import project_root
from tests.support.stack.ports import free_port

pytestmark = pytest.mark.e2e

PAGE = (project_root() / "docs/first-service.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FILES = {"python": "hello.py", "yaml": "hello.yaml"}


def typed(port: int) -> Iterator[tuple[str, list[str]]]:
    """Each command with the lines that the page shows below it; Envoy is on `port`."""
    for language, block in BLOCKS:
        if language == "console":
            for part in block.replace("8080", str(port)).split("$ ")[1:]:
                command, *lines = part.splitlines()
                yield command, lines


def seen(line: str, said: str) -> bool:
    """Whether the line was said; numbers, names of people and blanks may differ."""
    pattern = re.sub(r"\\ (\\ )*", r"\\s+", re.escape(line.strip().replace("you", "@")))
    pattern = re.sub(r"\d+(\\\.\d+)?(?=\\s\+s)", r"[\\d.]+", pattern).replace("@", r"\S+")
    return re.search(pattern, said) is not None


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    subprocess.run(
        [sys.executable, "-m", "cli.main", "down", "--yes"],
        cwd=project_root(),
        env={**os.environ, "ROLLWAY_HOME": str(tmp_path / ".rollway")},
        check=False,
        capture_output=True,
    )


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page asks with curl, which is not installed here")
def test_what_the_page_shows_is_what_happens(folder: Path) -> None:
    for language, block in BLOCKS:
        if language in FILES:
            (folder / FILES[language]).write_text(block, encoding="utf-8")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for command, lines in typed(free_port()):
        ended = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        said = ended.stdout + ended.stderr
        assert ended.returncode == 0, f"{command}: {said}"
        assert [line for line in lines if not seen(line, said)] == [], f"{command}: {said}"
