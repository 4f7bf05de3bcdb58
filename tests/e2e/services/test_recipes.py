"""docs/recipes.md: each recipe is typed, applied, asked through Envoy and rolled out again, with the real servers."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from stack.home.folder import project_root
from tests.support.proxies import plain_http
from tests.support.stack.ports import free_port

ROOT = project_root()
VENV, CADDY = ROOT / ".venv/recipes", ROOT / ".venv/caddy/usr/bin"
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not VENV.exists(), reason="NO SERVERS OF PYPI, SO NO RECIPE IS TRIED: 'make recipes'"),
]

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INSTALLED = re.compile(r"pip install (.+)$", re.MULTILINE)
_ANSWERS = {"flask": "/", "django": "/admin/login/", "node": "/", "caddy": "/"}
_ANSWERS |= dict.fromkeys(("uvicorn", "hypercorn", "granian"), "/")
_ANSWERS["digits"] = "/healthz"
"""Where each service of requests answers; the others are not asked any."""
A_ONE = [int(level, 17) for level in "000cd500000bg900003fg60007fgg200001gg300001gg600001gg600000bga00"]
"""The pixels of a digit, as a caller draws it."""
_PATH = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"], str(CADDY)))


@dataclass(frozen=True)
class Recipe:
    """A section of the page: the commands that it types, and its files by name."""

    title: str
    typed: list[str]
    files: dict[str, str]

    @property
    def deployments(self) -> list[str]:
        return [name.removesuffix(".yaml") for name in self.files if name.endswith(".yaml")]

    @property
    def is_here(self) -> bool:
        """Whether what it runs is installed on this machine."""
        programs = [word for word in ("node", "caddy") if word in self.deployments]
        return all(shutil.which(word, path=_PATH) for word in programs)


def recipes() -> Iterator[Recipe]:
    for section in (ROOT / "docs/recipes.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        typed, files = [], {}
        for language, block in _FENCE.findall(section):
            if language == "console":
                typed += [line.removeprefix("$ ") for line in block.splitlines()]
            else:
                named = re.match(r"(?:#|//) (\S+)\n", block)
                assert named, block
                files[named[1]] = block
        if files:
            yield Recipe(section.partition("\n")[0], typed, files)


HERE = [recipe for recipe in recipes() if recipe.is_here]


def run(folder: Path, *words: str) -> str:
    environment = {**os.environ, "PATH": _PATH, "ROLLWAY_HOME": str(folder / ".rollway")}
    ended = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{words}: {ended.stdout}{ended.stderr}"
    return ended.stdout


def typed_in(folder: Path, recipe: Recipe, broker: str) -> Path:
    """The recipe in a folder of its own, but for what it installs: that is here already."""
    own = folder / recipe.deployments[0]
    own.mkdir()
    (own / "venv").symlink_to(VENV)
    for name, text in recipe.files.items():
        (own / name).write_text(text.replace("redis://127.0.0.1:6379/0", broker), encoding="utf-8")
    for line in recipe.typed:
        if " install " not in line:
            run(own, "bash", "-c", line)
    return own


def released(text: str, release: str) -> str:
    """The file with a variable that makes it another revision."""
    with_env = text if "env: {" in text else text.replace("revision:\n", "revision:\n  env: {}\n")
    return with_env.replace("env: {", f"env: {{RELEASE: '{release}', ")


def test_what_the_page_installs_is_what_is_tried() -> None:
    page = "\n".join(line for recipe in recipes() for line in recipe.typed)
    named = {word.strip("'") for line in _INSTALLED.findall(page) for word in line.split()}
    pinned = (ROOT / "requirements/recipes.in").read_text(encoding="utf-8").splitlines()
    assert named == {line for line in pinned if not line.startswith("#")}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    run(tmp_path, "rollway", "down", "--yes")


def test_every_recipe_answers_and_is_rolled_out(folder: Path, redis_url: str) -> None:
    port = free_port()
    run(folder, "rollway", "up", "--workers", "1", "--envoy-port", str(port))
    texts, names = [], [name for recipe in HERE for name in recipe.deployments]
    for recipe in HERE:
        own = typed_in(folder, recipe, redis_url)
        for name in recipe.deployments:
            text = (own / f"{name}.yaml").read_text(encoding="utf-8")
            texts.append(text.replace("revision:\n", f"revision:\n  working_directory: {own}\n"))
    file = folder / "all.yaml"
    for release in ("1", "2"):
        file.write_text("---\n".join(released(text, release) for text in texts), encoding="utf-8")
        run(folder, "rollway", "apply", "-f", "all.yaml", "--wait")
        for name, path in _ANSWERS.items():
            if name in names:
                answer = plain_http.get(f"http://127.0.0.1:{port}/{name}{path}", timeout=300)
                assert answer.status_code == 200, (name, answer.text)
    warmed_up = run(folder, "rollway", "logs", "digits").count("POST /digit")
    answer = plain_http.post(f"http://127.0.0.1:{port}/digits/digit", json=A_ONE)
    assert answer.json() == {"digit": 1}
    assert warmed_up >= 2 * 3, "three good answers of each of two replicas, before any caller"
    views = json.loads(run(folder, "rollway", "status", "--json"))["deployments"]
    assert {view["name"]: view["state"] for view in views} == dict.fromkeys(names, "ready")
    assert all(len(json.loads(run(folder, "rollway", "revisions", "list", name, "--json"))) == 2 for name in names)
