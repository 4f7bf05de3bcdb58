"""The example for services that have Celery and not Rollway, run where nothing of Rollway can be imported."""

import os
import subprocess
import sys
from pathlib import Path

from stack.home.folder import project_root

EXAMPLE = project_root() / "examples" / "enqueue_activate_revision.py"


def run_example(redis_url: str, folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """In that folder, with nothing in its environment but PATH, REDIS_URL and the variables."""
    program = f"""
import pathlib, runpy, sys
sys.path[:] = [folder for folder in sys.path if not (pathlib.Path(folder) / "tasks" / "app.py").exists()]
sys.argv = {[str(EXAMPLE), *arguments]!r}
try:
    import domain
except ImportError:
    runpy.run_path({str(EXAMPLE)!r}, run_name="__main__")
else:
    sys.exit("Rollway can be imported here: " + str(domain.__file__))
"""
    environment = {"PATH": os.environ["PATH"], "REDIS_URL": redis_url, **variables}
    command = [sys.executable, "-P", "-c", program]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60)
