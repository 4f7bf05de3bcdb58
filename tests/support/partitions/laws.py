"""What must hold whatever was cut: nobody blamed, nothing started twice, and nothing that the doctor finds."""

import json
import os
import subprocess
import sys

from tests.support.partitions.several_hosts import SeveralHosts
from tests.support.stack.stack import ROOT


def faults(hosts: SeveralHosts) -> list[str]:
    """A sentence for each law that is broken now; to be asked when all is whole again."""
    fleet = hosts.fleet
    blamed = "SELECT name, failed_starts FROM deployments WHERE failed_starts > 0"
    rollouts = [rollout for name in ("web", "side") for rollout in fleet.rollouts(name)]
    return [
        *[f"blamed: {row}" for row in fleet.rows(blamed)],
        *[f"failed starts: {each}" for each in rollouts if each["failed_routes"]],
        *[f"went back: {each}" for each in rollouts if each["outcome"] != "completed" or each["back_reason"]],
        *[f"an error: {row}" for row in fleet.rows("SELECT * FROM deployment_history WHERE result = 'error'")],
        *[f"started {times} times: {route}" for route, times in hosts.starts().items() if times > 1],
        *_found_by_doctor(hosts),
    ]


def _found_by_doctor(hosts: SeveralHosts) -> list[str]:
    command = [sys.executable, "-m", "cli.main", "doctor", "--json"]
    given = {**os.environ, **hosts.fleet.environment}
    done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    return [] if found["ok"] else [done.stderr]
