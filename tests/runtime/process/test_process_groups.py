"""A replica that starts others: all of its process group is asked to end, and has its grace."""

import shlex
import sys
from pathlib import Path

from runtime.process.process_runtime import ProcessRuntime
from tests.support.stack.waiting import eventually
from tests.support.workers.runtimes import ended, is_running, log_of, pid_of, processes_of, python, request

DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(60)
"""
SLOW_TO_END = """
import os, signal, sys, time
def leave(*_):
    print("asked", flush=True)
    while not os.path.exists("{may_end}"):
        time.sleep(0.01)
    print("done", flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, leave)
os.write(1, b"up\\n")  # not printed: a signal that comes before print returns could not print itself
time.sleep(60)
"""
LEAVES_A_CHILD = "import subprocess; subprocess.Popen(['sleep', '60'])"


def test_the_whole_process_group_is_asked_to_end_and_has_its_grace(replica_home: Path, runtime: ProcessRuntime) -> None:
    """The shell ends at once, and its child is given the time that it needs."""
    may_end = replica_home / "may-end"
    behind_a_shell = ("sh", "-c", f"{shlex.quote(sys.executable)} -c '{SLOW_TO_END.format(may_end=may_end)}' & wait")
    replica = runtime.start(request(behind_a_shell))
    log_of(runtime, replica.route_id, "up")
    runtime.terminate(replica.route_id)
    log_of(runtime, replica.route_id, "asked")
    eventually(lambda: not is_running(pid_of(replica)))
    found = runtime.find(replica.route_id)
    assert found
    assert found.running
    may_end.touch()
    ended(ProcessRuntime(replica_home), replica.route_id)
    assert runtime.log_tail(replica.route_id, 1) == "done"
    assert processes_of(replica_home) == []


def test_what_is_left_of_a_group_after_its_grace_is_killed(replica_home: Path, runtime: ProcessRuntime) -> None:
    behind_a_shell = ("sh", "-c", f"{shlex.quote(sys.executable)} -c '{DEAF}' & wait")
    replica = runtime.start(request(behind_a_shell))
    log_of(runtime, replica.route_id, "up")
    runtime.terminate(replica.route_id)
    eventually(lambda: not is_running(pid_of(replica)))
    assert runtime.find(replica.route_id).running  # type: ignore[union-attr]
    runtime.kill(replica.route_id)
    ended(runtime, replica.route_id)
    assert processes_of(replica_home) == []


def test_a_replica_whose_process_ends_unasked_has_ended_whatever_it_leaves(runtime: ProcessRuntime) -> None:
    replica = runtime.start(request(python(LEAVES_A_CHILD)))
    assert ended(runtime, replica.route_id).exit_code == 0
    runtime.terminate(replica.route_id)
    assert not runtime.find(replica.route_id).running  # type: ignore[union-attr]
