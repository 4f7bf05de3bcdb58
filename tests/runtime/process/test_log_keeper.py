"""The log of a replica: kept by a process of its own, and at no moment larger than it may be."""

import json
import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

from domain.installation.log_limits import LogLimits
from runtime.base import ReplicaRequest
from runtime.process.accounts import EACH, Accounts
from runtime.process.begin.limits import ProcessLimits
from runtime.process.logs import ProcessLogs
from runtime.process.runtime import ProcessRuntime
from tests.support.stack.waiting import eventually
from tests.support.workers.runtimes import ended, is_running, log_of, pid_of, python, request

SMALL = LogLimits(megabytes=0.5, files=3)


def sizes(home: Path, asked: ReplicaRequest) -> int:
    """Of all files of its log; one that is set aside in this moment counts at the next look."""
    found = 0
    for path in ProcessLogs(home).folder.glob(f"{asked.route_id}*"):
        with suppress(FileNotFoundError):
            found += path.stat().st_size
    return found


def test_a_replica_that_writes_without_end_fills_no_disk_and_is_read_to_its_end(home: Path) -> None:
    """Nobody looks at the sizes of logs here, as where all workers are away."""
    code = "[print(number, 'x' * 1000, flush=True) for number in range(20_000)]; print('the end')"
    runtime, asked = ProcessRuntime(home, limits=ProcessLimits(logs=SMALL)), request(python(code))
    runtime.start(asked)
    largest = 0
    while runtime.find(asked.route_id).running:  # type: ignore[union-attr]
        largest = max(largest, sizes(home, asked))
        time.sleep(0.01)
    most = SMALL.files * SMALL.most_bytes
    assert SMALL.most_bytes < max(largest, sizes(home, asked)) <= most + 65_536
    assert runtime.log_tail(asked.route_id, 1) == "the end"
    assert [path.stat().st_mode & 0o777 for path in ProcessLogs(home).folder.glob(f"{asked.route_id}*")] == [0o600] * 3


def test_a_log_outlives_the_worker_that_began_it_and_ends_with_its_replica(home: Path) -> None:
    asked = request(python("import time; print('up', flush=True); time.sleep(60)"))
    runtime = ProcessRuntime(home)
    replica = runtime.start(asked)
    log_of(runtime, asked.route_id, "up")
    record = json.loads((home / "replicas" / f"{asked.route_id}.json").read_text())
    keeper = record["log_keeper"]["pid"]
    assert os.getsid(keeper) != pid_of(replica)
    assert os.getpgid(keeper) == keeper != os.getpgid(0)
    runtime.kill(asked.route_id)
    eventually(lambda: not is_running(keeper))


@pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT MAY CHANGE THE USER, SO THIS IS NOT TESTED HERE")
def test_a_replica_opens_its_output_anew_as_its_account(home: Path) -> None:
    runtime = ProcessRuntime(home, accounts=Accounts(EACH))
    asked = request(("sh", "-c", "echo out > /dev/stdout; echo err > /dev/stderr"))
    runtime.start(asked)
    ended(runtime, asked.route_id)
    assert runtime.log_tail(asked.route_id, 2) == "out\nerr"


def test_with_one_file_the_log_begins_anew(home: Path) -> None:
    code = "for number in range(2000): print(number, 'x' * 1000, flush=True)"
    runtime, asked = (
        ProcessRuntime(home, limits=ProcessLimits(logs=LogLimits(megabytes=0.5, files=1))),
        request(python(code)),
    )
    runtime.start(asked)
    ended(runtime, asked.route_id)
    assert runtime.log_tail(asked.route_id, 1).startswith("1999 ")
    assert [path.name for path in ProcessLogs(home).folder.iterdir()] == [f"{asked.route_id}.log"]
    assert sizes(home, asked) <= 524_288


def test_what_cannot_be_written_is_dropped_and_holds_nobody_up(home: Path) -> None:
    code = "for number in range(2000): print(number, 'x' * 1000, flush=True)"
    runtime, asked = ProcessRuntime(home), request(python(code))
    (ProcessLogs(home).folder / f"{asked.route_id}.log").mkdir(parents=True)
    replica = runtime.start(asked)
    assert ended(runtime, replica.route_id).exit_code == 0


def test_where_no_keeper_can_be_had_the_replica_writes_its_log(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.process.keeper._heads_are_exact", lambda: False)
    runtime, asked = ProcessRuntime(home), request(python("print('all of it')"))
    runtime.start(asked)
    ended(runtime, asked.route_id)
    assert runtime.log_tail(asked.route_id, 1) == "all of it"
