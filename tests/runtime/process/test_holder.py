"""Whether it is the replica that listens at its port."""

import json
import os
from pathlib import Path

import pytest

from runtime.process.accounts import EACH, Accounts
from runtime.process.process_runtime import ProcessRuntime
from tests.support.stack.waiting import eventually
from tests.support.workers.runtimes import request

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT MAY CHANGE THE USER, SO THIS IS NOT TESTED HERE")
BY_A_DAEMON = """
import os, socket, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        taken = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
        time.sleep(600)
    os._exit(0)
os.wait()
time.sleep(600)
"""


@pytest.mark.parametrize("version", ["this", "before"])
def test_what_has_left_the_family_of_a_replica_is_known_by_its_account(replica_home: Path, version: str) -> None:
    runtime, asked = ProcessRuntime(replica_home, accounts=Accounts(EACH)), request(("python3", "-c", BY_A_DAEMON))
    runtime.start(asked)
    file = replica_home / "replicas" / f"{asked.route_id}.json"
    if version == "before":
        record = json.loads(file.read_text())
        del record["uid"]
        file.write_text(json.dumps(record))
    replica = eventually(lambda: seen if (seen := runtime.find(asked.route_id)) and seen.listens else None)
    assert replica.stranger == ""
    runtime.kill(asked.route_id)
