"""What one replica may take of what all replicas of its host need."""

import json
import os
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from domain.installation.settings import LogLimits
from domain.revisions.revision import RevisionSpec
from runtime.process.accounts import EACH, Accounts
from runtime.process.begin.limits import ProcessLimits
from runtime.process.process_runtime import ProcessRuntime
from runtime.protocol import ReplicaRequest, ReplicaStartError
from tests.support.stack.waiting import eventually
from tests.support.workers.runtimes import SLEEPER, ended, is_running, log_of, pid_of

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT MAY CHANGE THE USER, SO THIS IS NOT TESTED HERE")
OWN = Accounts(EACH) if os.geteuid() == 0 else Accounts()
SMALL = LogLimits(megabytes=0.5, files=3)


def of(deployment: str, code: str | Sequence[str]) -> ReplicaRequest:
    command = ("python3", "-c", code) if isinstance(code, str) else tuple(code)
    spec = RevisionSpec(command=command, stop_grace_seconds=1)
    return ReplicaRequest(uuid4(), deployment, f"{deployment}-1", spec)


def test_limits_of_core_dumps_files_and_processes_are_hard(replica_home: Path) -> None:
    code = """
import json, resource
print(json.dumps([resource.getrlimit(getattr(resource, f"RLIMIT_{name}")) for name in ("CORE", "NOFILE", "NPROC")]))
"""
    runtime = ProcessRuntime(replica_home, accounts=OWN, limits=ProcessLimits(processes=1234, files=1000))
    replica = runtime.start(of("web", code))
    ended(runtime, replica.route_id)
    cores, files, processes = json.loads(runtime.log_tail(replica.route_id, 1))
    assert (cores, files) == ([0, 0], [1000, 1000])
    assert os.geteuid() or processes == [1234, 1234]


@needs_root
def test_without_a_number_a_deployment_has_a_quarter_of_what_there_is(replica_home: Path) -> None:
    runtime = ProcessRuntime(replica_home, accounts=OWN)
    replica = runtime.start(of("web", "import resource; print(resource.getrlimit(resource.RLIMIT_NPROC)[1])"))
    ended(runtime, replica.route_id)
    there_is = min(int(Path(f"/proc/sys/kernel/{name}").read_text()) for name in ("threads-max", "pid_max"))
    assert 16 < int(runtime.log_tail(replica.route_id, 1)) <= there_is // 4


BOMB = """
import os, time
count = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(600)
        count += 1
except OSError:
    print(count, flush=True)
    time.sleep(600)
"""


@needs_root
def test_a_deployment_that_forks_without_end_leaves_the_others_theirs(replica_home: Path) -> None:
    runtime = ProcessRuntime(replica_home, accounts=OWN, limits=ProcessLimits(processes=40))
    for _ in range(2):
        bomb = runtime.start(of("bomb", BOMB))
    eventually(lambda: runtime.log_tail(bomb.route_id, 1) != "")
    pids = {
        p.pid for p in psutil.process_iter(["uids"]) if p.info["uids"].real == psutil.Process(pid_of(bomb)).uids().real
    }
    assert 30 < len(pids) <= 42, "who starts another one is counted with it"
    other = runtime.start(of("web", "import os; print(os.fork() >= 0, flush=True)"))
    log_of(runtime, other.route_id, "True")


LEAVES = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        {then}
    os._exit(0)
os.wait()
print("left", flush=True)
time.sleep(600)
"""
KEEPS_ITS_MARK = LEAVES.format(then="time.sleep(600)")
WITHOUT_ITS_MARK = LEAVES.format(then='os.execve("/bin/sleep", ["sleep", "600"], {})')


def whole_tree(runtime: ProcessRuntime, asked: ReplicaRequest, left_as: str) -> list[psutil.Process]:
    """The replica, and what has left its session and its group."""
    replica = runtime.start(asked)
    log_of(runtime, asked.route_id, "left")
    uid = psutil.Process(pid_of(replica)).uids().real

    def both() -> list[psutil.Process]:
        found = [
            process
            for process in psutil.process_iter(["uids", "cmdline"])
            if process.info["uids"].real == uid and left_as in " ".join(process.info["cmdline"] or ())
        ]
        return [psutil.Process(pid_of(replica)), *found] if found else []

    return eventually(both)


def test_who_has_left_the_session_of_a_replica_ends_with_it(replica_home: Path) -> None:
    runtime, asked = ProcessRuntime(replica_home, accounts=OWN), of("web", KEEPS_ITS_MARK)
    tree = whole_tree(runtime, asked, "fork() == 0")
    assert len({os.getsid(process.pid) for process in tree}) == 2
    runtime.kill(asked.route_id)
    eventually(lambda: not any(is_running(process.pid) for process in tree))


@needs_root
def test_who_has_left_without_a_mark_ends_with_the_last_replica_of_the_account(replica_home: Path) -> None:
    runtime, asked, beside = ProcessRuntime(replica_home, accounts=OWN), of("web", WITHOUT_ITS_MARK), of("web", SLEEPER)
    sibling = runtime.start(beside)
    other = runtime.start(of("other", SLEEPER))
    left = next(
        process
        for process in whole_tree(runtime, asked, "sleep 600")
        if process.pid != pid_of(sibling) and os.getsid(process.pid) != process.pid
    )
    for request in (asked, beside):
        assert is_running(left.pid)
        runtime.kill(request.route_id)
        ended(runtime, request.route_id)
        runtime.forget(request.route_id)
    eventually(lambda: not is_running(left.pid))
    assert is_running(pid_of(other))


HOARDS = """
import socket, time
held = []
for port in range({start}, {stop}):
    taken = socket.socket()
    try:
        taken.bind(("", port))
        {listens}
        held.append(taken)
    except OSError:
        pass
print("took", flush=True)
time.sleep(600)
"""
PORTS = range(25_000, 25_400)


@needs_root
@pytest.mark.parametrize("listens", ["taken.listen()", "pass"], ids=["listens", "only binds"])
def test_a_replica_that_takes_all_ports_is_ended_for_the_next_that_needs_one(replica_home: Path, listens: str) -> None:
    runtime = ProcessRuntime(replica_home, PORTS, accounts=OWN)
    hoard = of("hoard", HOARDS.format(start=PORTS.start, stop=PORTS.stop, listens=listens))
    held = runtime.start(hoard)
    log_of(runtime, hoard.route_id, "took")
    assert runtime.start(of("web", SLEEPER)).running
    ended(runtime, held.route_id)


def test_who_holds_all_ports_and_is_none_of_ours_is_named(replica_home: Path) -> None:
    few = range(7_400, 7_403)  # replicas and servers of other tests have higher ones
    with ExitStack() as held:
        for port in few:
            listening = held.enter_context(socket.socket())
            listening.bind(("", port))
            listening.listen()
        said = f"no port from 7400 to 7402 is free on this host: 3 of user {os.geteuid()}"
        with pytest.raises(ReplicaStartError, match=said):
            ProcessRuntime(replica_home, few).start(of("web", SLEEPER))
