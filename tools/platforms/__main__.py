"""`make platforms`: whether each platform has a wheel of every pin, and that pins are what is installed, on any day."""

import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tools.platforms.any_day import installed_on_any_day
from tools.platforms.table import PLATFORMS, PYTHONS, Oldest

ROOT = Path(__file__).parents[2]
UV = ROOT / ".venv" / "bin" / "uv"
HERE = {"x86_64": "x86-64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
OURS = f"{'macOS' if sys.platform == 'darwin' else 'Linux'} {HERE}"


def main() -> int:
    """Exit code 0 when every platform has every wheel, and what could run here did."""
    table = Table("platform", "Python", "base.txt", "runtime.txt", "run", title="wheels of every pinned package")
    faults: list[str] = []
    for found in PLATFORMS:
        for python in PYTHONS:
            cells = [_resolved(found.base, python, "base", faults), _resolved(found.runtime, python, "runtime", faults)]
            run = _run(python, faults) if found.name == OURS else "only resolved"
            table.add_row(found.name, python, *cells, run)
    days = Table("list", "pip", "installed", title="beside a newer version of every package")
    for row in installed_on_any_day(sys.executable, faults):
        days.add_row(*row)
    console = Console(width=120)
    console.print(table)
    console.print(days)
    for fault in faults:
        console.print(fault, style="red", markup=False)
    return 1 if faults else 0


def _resolved(oldest: Oldest, python: str, pins: str, faults: list[str]) -> str:
    """How many wheels uv would install on that system; nothing is downloaded but what describes them."""
    with tempfile.TemporaryDirectory() as nowhere:
        options = f"--no-config --dry-run --only-binary :all: --no-deps --require-hashes --target {nowhere}"
        asked = f"--python-platform {oldest.uv} --python-version {python} -r requirements/{pins}.txt"
        command = [str(UV), "pip", "install", *options.split(), *asked.split()]
        said = _said(command, {"MACOSX_DEPLOYMENT_TARGET": oldest.macos} if oldest.macos else {})
    count = re.search(r"Would install (\d+) packages", said)
    if count is None:
        faults.append(f"{oldest.said}, Python {python}, {pins}.txt: {said.strip()}")
        return f"{oldest.said}: NO"
    return f"{oldest.said}: {count[1]} wheels"


def _run(python: str, faults: list[str]) -> str:
    """Everything installed into an environment of its own, and the demo in it."""
    if _code([f"python{python}", "-c", "import venv, ensurepip"]) != 0:
        return f"only resolved: no python{python} here"
    [wheel] = ROOT.glob("dist/rollway-*.whl")
    with tempfile.TemporaryDirectory(prefix="rollway-platform-") as folder:
        program = f"{folder}/venv/bin/"
        pip = [
            f"{program}python",
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
            "--only-binary",
            ":all:",
        ]
        steps = (
            [f"python{python}", "-m", "venv", f"{folder}/venv"],
            [*pip, "--no-deps", "--require-hashes", "-r", str(ROOT / "requirements" / "runtime.txt")],
            [*pip, "--no-deps", str(wheel)],
            [f"{program}rollway", "demo", "--json"],
        )
        for step in steps:
            if _code(step, folder) != 0:
                faults.append(f"Python {python}: {' '.join(step)} failed; run it by hand")
                return "FAILED"
    return "installed; the demo kept its promises"


def _said(command: Sequence[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def _code(command: Sequence[str], folder: str | None = None) -> int:
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode
    except FileNotFoundError:
        return 127


if __name__ == "__main__":
    sys.exit(main())
