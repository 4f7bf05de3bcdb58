"""A day that has not come: an index that holds a newer version of every package, beside those that are pinned."""

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LISTS = ("base", "runtime", "dev", "docs", "clients", "lock", "envoy-api")
NEWER = "99"
PIPS = ("that of Python", "the newest")


def installed_on_any_day(python: str, faults: list[str]) -> Iterator[tuple[str, str, str]]:
    """Install each list with the pip that comes with this Python, and with the newest one.

    Yields which list, which pip, and how it went; a line of `faults` for each that installed something else.
    """
    with tempfile.TemporaryDirectory(prefix="rollway-day-") as folder:
        index = Path(folder, "index")
        _fill(index, python, Path(folder))
        for pip in PIPS:
            for name in LISTS:
                said = _installed(name, pip, python, index, Path(folder, "venv"))
                faults += [f"{name}.txt with {pip} pip: {said}"] if said else []
                yield name, pip, "NO" if said else "as pinned"


def pinned(name: str) -> Mapping[str, str]:
    """The version of each package of a list that this Python takes, by its canonical name."""
    lines = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    found = [Requirement(line.rstrip(" \\")) for line in lines if re.match(r"[a-z0-9]", line)]
    return {
        canonicalize_name(pin.name): str(pin.specifier).removeprefix("==")
        for pin in found
        if pin.marker is None or pin.marker.evaluate()
    }


def _fill(index: Path, python: str, folder: Path) -> None:
    """The pinned wheels, the newest pip, and a version of every package that nobody has pinned."""
    venv = folder / "filling"
    _run([python, "-m", "venv", str(venv)])
    download = [f"{venv}/bin/python", "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
    for name in LISTS:
        _run([*download, "-d", str(index), "-r", str(ROOT / "requirements" / f"{name}.txt")])
    _run([*download, "-d", str(index), "pip"])
    for package in sorted({package for name in LISTS for package in pinned(name)}):
        _write_wheel(index, package.replace("-", "_"))


def _write_wheel(index: Path, package: str) -> None:
    name = f"{package}-{NEWER}"
    described = {
        "METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {NEWER}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: a day that has not come\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    with ZipFile(index / f"{name}-py3-none-any.whl", "w") as wheel:
        for file, text in described.items():
            wheel.writestr(f"{name}.dist-info/{file}", text)


def _installed(name: str, pip: str, python: str, index: Path, venv: Path) -> str:
    """An empty string, or the fault: the way in which the Makefile installs a list, into an environment of its own."""
    _run([python, "-m", "venv", "--clear", str(venv)])
    program = [f"{venv}/bin/python", "-m", "pip"]
    install = [*program, "install", "-q", "--disable-pip-version-check", "--no-index", "--find-links", str(index)]
    if pip == PIPS[1]:
        _run([*install, "--upgrade", "pip"])
    for step in ([*install, *options(), "-r", str(ROOT / "requirements" / f"{name}.txt")], [*program, "check"]):
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            return (done.stdout + done.stderr).strip()
    listed = json.loads(_run([*program, "list", "--format", "json", "--disable-pip-version-check"]))
    versions: dict[str, str] = {canonicalize_name(package["name"]): package["version"] for package in listed}
    wrong = [f"{its} {versions.get(its, 'not')}" for its, pin in pinned(name).items() if versions.get(its) != pin]
    return f"not as pinned: {', '.join(wrong)}" if wrong else ""


def options() -> Sequence[str]:
    """The options with which the Makefile installs a list of pins."""
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    [said] = [line.removeprefix("PINNED := ") for line in lines if line.startswith("PINNED := ")]
    return said.split()


def _run(command: Sequence[str]) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
