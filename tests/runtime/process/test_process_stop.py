import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from runtime.process.process_runtime import ProcessRuntime
from runtime.process.termination import stop_all
from tests.support.stack.waiting import eventually
from tests.support.workers.runtimes import (
    HTTP_SERVICE,
    ROOT,
    SLEEPER,
    ended,
    is_running,
    log_of,
    pid_of,
    processes_of,
    python,
    request,
)

IGNORES_SIGTERM = """
import signal, subprocess, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(["sleep", "60"])
subprocess.Popen(["sleep", "60"], start_new_session=True)
subprocess.Popen(["sleep", "60"], env={})
subprocess.Popen(["sleep", "60"], env={}, start_new_session=True)
print("up", flush=True)
time.sleep(60)
"""
LOGS_A_LOT = """
import sys
for number in range(200_000):
    print(number)
sys.stdout.flush()  # Python buffers what it writes to a file, and exit() writes its word before the buffer's rest
sys.stdout.buffer.write(b"caf\\xff")
sys.stdout.flush()
sys.exit("the end")
"""
LEAVES_A_CHILD = "import subprocess; subprocess.Popen(['sleep', '60']); print('left', flush=True)"


def test_an_exit_code_is_told_and_survives_the_worker(replica_home: Path, runtime: ProcessRuntime) -> None:
    replica = runtime.start(request(python("import sys; print('bad'); sys.exit(3)")))
    assert ended(runtime, replica.route_id).exit_code == 3
    again = ProcessRuntime(replica_home).find(replica.route_id)
    assert again
    assert (again.running, again.exit_code) == (False, 3)
    assert not psutil.pid_exists(pid_of(replica)), "a zombie is left"


def test_a_worker_that_is_not_the_parent_sees_a_zombie_as_ended_with_its_exit_code(replica_home: Path) -> None:
    started = """
import sys, time
from pathlib import Path
from runtime.process.process_runtime import ProcessRuntime
from tests.support.workers.runtimes import python, request
print(ProcessRuntime(Path(sys.argv[1])).start(request(python("import sys; sys.exit(5)"))).route_id, flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", started, str(replica_home)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        parent.stdout.readline()
        runtime = ProcessRuntime(replica_home)
        replica = eventually(lambda: next((found for found in runtime.everyone() if not found.running), None))
        assert replica
        assert psutil.Process(pid_of(replica)).status() == psutil.STATUS_ZOMBIE
        assert replica.exit_code == 5
        parent.communicate(timeout=10)


def test_everyone_reaps_children_that_another_worker_has_forgotten(replica_home: Path, runtime: ProcessRuntime) -> None:
    replica = runtime.start(request(python("pass")))
    eventually(lambda: psutil.Process(pid_of(replica)).status() == psutil.STATUS_ZOMBIE)
    (replica_home / "replicas" / f"{replica.route_id}.json").unlink()
    assert list(runtime.everyone()) == []
    assert not psutil.pid_exists(pid_of(replica))


def test_sigterm_ends_the_service_gracefully(runtime: ProcessRuntime) -> None:
    replica = runtime.start(request(HTTP_SERVICE))
    log_of(runtime, replica.route_id, "listens")
    runtime.terminate(replica.route_id)
    assert ended(runtime, replica.route_id).exit_code == 0
    assert "stopped" in runtime.log_tail(replica.route_id, 1)
    runtime.terminate(replica.route_id)
    runtime.kill(replica.route_id)


def test_who_ignores_sigterm_is_killed_with_its_descendants(replica_home: Path, runtime: ProcessRuntime) -> None:
    replica = runtime.start(request(python(IGNORES_SIGTERM)))
    log_of(runtime, replica.route_id, "up")
    children = psutil.Process(pid_of(replica)).children()
    assert len(children) == 4
    runtime.terminate(replica.route_id)
    with pytest.raises(AssertionError):
        eventually(lambda: not is_running(pid_of(replica)), within=0.2)
    runtime.kill(replica.route_id)
    assert ended(runtime, replica.route_id).exit_code == -signal.SIGKILL
    eventually(lambda: not any(is_running(child.pid) for child in children))
    assert processes_of(replica_home) == []


def test_forgetting_kills_what_an_ended_replica_left_and_keeps_its_log(
    replica_home: Path, runtime: ProcessRuntime
) -> None:
    replica = runtime.start(request(python(LEAVES_A_CHILD)))
    log_of(runtime, replica.route_id, "left")
    ended(runtime, replica.route_id)
    eventually(lambda: len(processes_of(replica_home)) == 1)
    runtime.forget(replica.route_id)
    eventually(lambda: processes_of(replica_home) == [])
    assert runtime.find(replica.route_id) is None
    assert runtime.log_tail(replica.route_id, 5) == "left"
    runtime.forget(replica.route_id)


GIVES_UP_RIGHTS = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
os.setuid(61234)
print("given up", flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT MAY CHANGE THE USER, SO THIS IS NOT TESTED HERE")
def test_a_replica_that_has_become_another_user_is_killed_with_its_children(runtime: ProcessRuntime) -> None:
    replica = runtime.start(request(python(GIVES_UP_RIGHTS)))
    eventually(lambda: runtime.log_tail(replica.route_id, 5).split("\n") == ["given up"] * 2)
    both = [psutil.Process(pid_of(replica)), *psutil.Process(pid_of(replica)).children()]
    assert {process.uids().real for process in both} == {61234}
    runtime.kill(replica.route_id)
    eventually(lambda: not any(is_running(process.pid) for process in both))


def test_a_running_replica_is_not_forgotten(runtime: ProcessRuntime) -> None:
    replica = runtime.start(request())
    runtime.forget(replica.route_id)
    assert runtime.find(replica.route_id) == replica


def test_a_recycled_pid_is_never_signalled(replica_home: Path, runtime: ProcessRuntime) -> None:
    replica = runtime.start(request())
    with subprocess.Popen(SLEEPER, start_new_session=True) as stranger:
        file = replica_home / "replicas" / f"{replica.route_id}.json"
        recycled = json.loads(file.read_text())
        recycled["process"] |= {"pid": stranger.pid, "started": recycled["process"]["started"] - 100}
        file.write_text(json.dumps(recycled))
        found = runtime.find(replica.route_id)
        assert found
        assert (found.running, found.exit_code) == (False, None)
        runtime.terminate(replica.route_id)
        runtime.kill(replica.route_id)
        file.write_text(json.dumps(recycled))
        assert stop_all(replica_home, grace_seconds=0.1) == 0
        assert stranger.poll() is None
        stranger.kill()


def test_stop_all_ends_and_forgets_everyone_and_tells_how_many_ran(replica_home: Path, runtime: ProcessRuntime) -> None:
    runtime.start(request())
    stubborn = runtime.start(request(python(IGNORES_SIGTERM)))
    log_of(runtime, stubborn.route_id, "up")
    gone = runtime.start(request(python("pass")))
    ended(runtime, gone.route_id)
    (replica_home / "replicas" / f"{uuid4()}.json").write_text("{")
    assert stop_all(replica_home, grace_seconds=0.3) == 2
    assert processes_of(replica_home) == []
    assert list(runtime.everyone()) == []
    assert list((replica_home / "replicas").glob("*.json")) == []
    assert stop_all(replica_home) == 0
    assert stop_all(replica_home / "never-used") == 0


def test_broken_records_and_foreign_files_are_skipped(replica_home: Path, runtime: ProcessRuntime) -> None:
    replica = runtime.start(request())
    folder = replica_home / "replicas"
    for name in (f"{uuid4()}.json", "notes.json", f"{replica.route_id}.draft"):
        (folder / name).write_text('{"route_id": ')
    (folder / f"{uuid4()}.json").write_bytes(b"\xff\xfe")
    (folder / f"{uuid4()}.json").write_text((folder / f"{replica.route_id}.json").read_text())
    assert list(runtime.everyone()) == [replica]
    assert runtime.find(uuid4()) is None


def test_the_log_tail_is_the_last_lines_also_after_a_restart(replica_home: Path, runtime: ProcessRuntime) -> None:
    replica = runtime.start(request(python(LOGS_A_LOT)))
    ended(runtime, replica.route_id)
    assert (
        ProcessRuntime(replica_home).log_tail(replica.route_id, 3)
        == "199998\n199999\ncaf\N{REPLACEMENT CHARACTER}the end"
    )
    assert runtime.log_tail(replica.route_id, 0) == ""
    assert runtime.log_tail(uuid4(), 5) == ""
