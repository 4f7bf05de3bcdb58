"""What a start of one replica process costs: `python -m tools.bench.rollouts.starts`.

In turns, on one machine: a bare process, a replica as the worker's own user, and one as its deployment's account, which
takes root. Each is `sleep`, so all that is measured is what Rollway does; the log's keeper is among it. With
`--against FOLDER`, a checkout of another commit, its starts are measured in the same turns.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import monotonic

from runtime.process.accounts import EACH
from stack.home.folder import project_root

_COMMAND = ("sleep", "600")
_OWN_USER, _ANOTHER_USER = "None", "'daemon'"
_STARTS = """
import json, sys, tempfile, time
from pathlib import Path
from uuid import uuid4
from domain.revisions.revision import RevisionSpec
from runtime.protocol import ReplicaRequest
from runtime.process.accounts import Accounts
from runtime.process.termination import end_everyone
from runtime.process.process_runtime import ProcessRuntime
with tempfile.TemporaryDirectory() as folder:
    runtime, spec, walls = ProcessRuntime(Path(folder), accounts=Accounts({user})), RevisionSpec(command={command}), []
    for _ in range({count} + 1):
        asked = ReplicaRequest(uuid4(), "web", "web-1", spec)
        began = time.monotonic()
        runtime.start(asked)
        walls.append(time.monotonic() - began)
    end_everyone(runtime, 0.1)
    print(json.dumps(walls[1:]))  # what is done once for a home or a process is no part of a start
"""


def main() -> None:
    """Measure in turns, and print medians, and what they are of a bare process."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.rollouts.starts")
    parser.add_argument("--starts", type=int, default=20, help="of each kind in a turn")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--against", type=Path, help="a checkout of another commit")
    given = parser.parse_args()
    users = {"own user": _OWN_USER, **({"another user": _ANOTHER_USER} if os.geteuid() == 0 else {})}
    kinds = {f"here, as {name}": (project_root(), user) for name, user in users.items()}
    if os.geteuid() == 0:
        kinds["here, as the deployment's account"] = (project_root(), repr(EACH))
    if given.against:
        kinds |= {f"there, as {name}": (given.against, user) for name, user in users.items()}
    bare: list[float] = []
    seen: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(given.turns):
        bare += _bare(given.starts)
        for kind, (code, user) in kinds.items():
            seen[kind] += _replicas(code, user, given.starts)
    for kind, walls in {"a bare process": bare, **seen}.items():
        print(f"{kind:36} {median(walls) * 1e3:7.2f} ms {median(walls) / median(bare):7.2f} of a bare process")


def _replicas(code: Path, user: str, count: int) -> list[float]:
    """Seconds until a replica runs, each, with the code of that folder."""
    program = _STARTS.format(user=user, command=_COMMAND, count=count)
    done = subprocess.run([sys.executable, "-c", program], cwd=code, check=True, capture_output=True)
    walls: list[float] = json.loads(done.stdout)
    return walls


def _bare(count: int) -> list[float]:
    walls, started = [], []
    for _ in range(count):
        began = monotonic()
        started.append(subprocess.Popen(_COMMAND, start_new_session=True))
        walls.append(monotonic() - began)
    for process in started:
        process.kill()
        process.wait()
    return walls


if __name__ == "__main__":
    main()
