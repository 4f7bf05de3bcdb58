"""`rollway status` starts fast: what it needs is loaded, and no more."""

import subprocess
import sys


def test_status_and_what_it_reads_load_nothing_of_what_decides_or_looks_ahead() -> None:
    deciding = (
        "db.judge_evidence",
        "db.views.planning_views",
        "domain.cycle.evaluator",
        "domain.planning",
        "domain.strategies",
    )
    program = f"""
import sys
from api.people.reads.read_table import BY_PATH
from cli.main import main

main(["status", "--help"])
for path in ("/v1/deployments", "/v1/deployments/{{deployment}}", "/v1/signs-of-life", "/v1/losing"):
    BY_PATH[path].source
print("loaded:", *(name for name in {deciding} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded:"
