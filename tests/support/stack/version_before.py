"""The version before as a user has it: its code in a folder of its own, run with the packages of today."""

import json
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

from stack.home.folder import project_root
from tests.support.stack.stack import Fleet

VERSION_BEFORE = "2b1fbbd8d681b1ee19a4bfeb33a4c3164e27b93d"
"""The commit that is 0.1.0."""

POLICIES = {
    "web": {
        "strategy": "rolling_update",
        "spec": {"max_surge": 1, "max_unavailable": 0, "min_ready_seconds": 0.5},
        "limits": {"timeout_seconds": 300},
    },
    "model": {"strategy": "blue_green", "spec": {"auto_promote": False}, "limits": {"timeout_seconds": 300}},
}
REPLICAS = {"web": 4, "model": 1}


class NoVersionBeforeError(Exception):
    """This clone does not have that commit; the message says why."""


def unpack_version_before(folder: Path) -> Path:
    """Write the code of the version before into `folder` and return it. Raises NoVersionBeforeError."""
    command = ["git", "-C", str(project_root()), "archive", "--format=zip", VERSION_BEFORE]
    try:
        archived = subprocess.run(command, capture_output=True, check=True, timeout=900)
    except FileNotFoundError:
        raise NoVersionBeforeError("there is no git here") from None
    except subprocess.CalledProcessError as error:
        raise NoVersionBeforeError(error.stderr.decode(errors="replace").strip()) from None
    with ZipFile(BytesIO(archived.stdout)) as archive:
        archive.extractall(folder)
    return folder


def run_with(fleet: Fleet, *arguments: str) -> str:
    """Run a Python module of the code that the fleet is at, to its end: what it printed."""
    command = [sys.executable, "-m", *arguments]
    ended = subprocess.run(
        command, cwd=fleet.code, env=fleet.environment, capture_output=True, text=True, check=False, timeout=900
    )
    assert ended.returncode == 0, f"{arguments}: {ended.stdout}{ended.stderr}"
    return ended.stdout


def apply_with(fleet: Fleet, revision: str, *options: str, **env: str) -> None:
    """Both deployments at this revision, as the command line of that code does it."""
    documents = [
        {
            "deployment": name,
            "replicas": REPLICAS[name],
            "revision": {
                "name": revision,
                "command": [sys.executable, str(project_root() / "examples" / "http_service.py")],
                "env": env,
                "health_check": {"interval_seconds": 0.5},
                "drain_seconds": 0.2,
            },
            "policy": policy,
        }
        for name, policy in POLICIES.items()
    ]
    file = fleet.home / f"{revision}.yaml"
    file.write_text("\n---\n".join(json.dumps(document) for document in documents))
    run_with(fleet, "cli.main", "apply", "-f", str(file), *options)
