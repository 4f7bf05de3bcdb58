"""The begin of a replica: what its revision says enters no step of it, and what hangs holds up nobody else."""

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from domain.revisions.revision import RevisionSpec
from runtime.process.begin.limits import ProcessLimits
from runtime.process.begin.spawn import BEGIN_SECONDS
from runtime.process.process_runtime import ProcessRuntime, _Held
from runtime.protocol import ReplicaRequest, ReplicaStartError, RuntimeUnavailableError
from tests.support.stack.server_process import suspend
from tests.support.stack.waiting import eventually
from tests.support.workers.runtimes import ROOT, ended, is_running, log_of, pid_of, python, request

OF_SHELLS = {
    "PWD": "/srv/app",
    "OLDPWD": "/",
    "IFS": ",",
    "OPTIND": "x",
    "PS4": "$(id)",
    "ENV": "/etc/profile",
    "_": "x",
}
OF_LOADERS = {
    "LD_SHOW_AUXV": "1",
    "LD_DEBUG": "statistics",
    "LD_TRACE_PRELINKING": "1",
    "GLIBC_TUNABLES": "glibc.malloc.check=1",
    "BASH_ENV": "/etc/profile",
    "BASH_FUNC_ulimit%%": "() { echo entered; }",
    "BASH_FUNC_exec%%": "() { echo entered; }",
    "PYTHONSTARTUP": "/etc/profile",
    "PYTHONHOME": "/nowhere",
    "PYTHONPATH": "/nowhere",
}
OF_OTHERS = {"discovery.type": "single-node", "my-flag": "on", "1st": "1", "empty": "", "snow": "☃ \n$x `x` \x01\xff"}
ANY = {**OF_SHELLS, **OF_LOADERS, **OF_OTHERS}


def environment_of(pid: int) -> dict[bytes, bytes]:
    """As it was passed to the program."""
    lines = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return dict(line.split(b"=", 1) for line in lines if line)


def test_the_environment_arrives_untouched_whatever_its_names_are(runtime: ProcessRuntime) -> None:
    pid = pid_of(runtime.start(request(("sleep", "60"), env=ANY)))
    environment = environment_of(pid)
    assert {name: environment.get(name.encode()) for name in ANY} == {name: ANY[name].encode() for name in ANY}
    ours = {b"HOST", b"PORT", *(name for name in environment if name.startswith(b"ROLLWAY_"))}
    assert environment.keys() - {name.encode() for name in ANY} - ours <= {name.encode() for name in os.environ}


@pytest.mark.parametrize("name", [*OF_SHELLS, *OF_LOADERS])
def test_no_variable_has_a_say_before_the_command_runs(runtime: ProcessRuntime, name: str) -> None:
    began = time.monotonic()
    replica = runtime.start(request(("sleep", "60"), env={name: ANY[name]}))
    assert time.monotonic() - began < BEGIN_SECONDS
    assert replica.running
    assert runtime.start(request()).running


LIBRARY = """
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void enter(void) {
    char line[4096];
    char *files[] = {"/proc/self/limits", "/proc/self/cmdline"};
    for (int i = 0; i < 2; i++)
        write(2, line, read(open(files[i], O_RDONLY), line, sizeof line));
    write(2, "\\n", 1);
    for (int i = 0; i < 128; i++) write(1, line, sizeof line);
}
"""


def test_a_library_of_the_revision_enters_its_command_alone_and_within_the_limits(replica_home: Path) -> None:
    """One that writes without end where the begin of a replica reports, if it can."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no compiler here")
    subprocess.run(
        [compiler, "-xc", "-", "-shared", "-fPIC", "-w", "-o", replica_home / "enter.so"],
        input=LIBRARY.encode(),
        check=True,
    )
    runtime = ProcessRuntime(replica_home, limits=ProcessLimits(files=500))
    replica = runtime.start(request(("sleep", "0.1"), env={"LD_PRELOAD": str(replica_home / "enter.so")}))
    ended(runtime, replica.route_id)
    log = runtime._logs.path(replica.route_id).read_bytes()
    entered = log[:4096]
    assert b"sleep\x000.1" in entered
    assert b"become" not in entered
    lines = {line[:26].strip(): line[26:].split()[:2] for line in entered.splitlines()}
    assert lines[b"Max core file size"] == [b"0", b"0"]
    assert lines[b"Max open files"][1] == b"500"


def held(runtime: ProcessRuntime, asked: ReplicaRequest) -> tuple[_Held, int]:
    """A replica before its begin, and the pid of what waits there."""
    holding = runtime._hold(asked)
    assert isinstance(holding, _Held)
    return holding, holding.process.child.pid


def test_nothing_of_the_revision_is_there_until_the_last_step(runtime: ProcessRuntime) -> None:
    asked = request(("sleep", "60"), env={"LD_PRELOAD": "/nowhere.so", "SECRET": "hunter2"})
    holding, pid = held(runtime, asked)
    assert environment_of(pid).keys() <= {b"LD_LIBRARY_PATH"}
    assert b"hunter2" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    runtime._let_begin(holding)
    assert environment_of(pid)[b"SECRET"] == b"hunter2"


def test_a_begin_that_hangs_holds_up_nobody_and_nothing_is_left_of_it(
    replica_home: Path, runtime: ProcessRuntime
) -> None:
    asked = request()
    holding, pid = held(runtime, asked)
    suspend(pid)
    with ThreadPoolExecutor() as pool:
        beginning = pool.submit(runtime._let_begin, holding)
        others = [ProcessRuntime(replica_home).start(request()) for _ in range(3)]
        assert not beginning.done(), "all others start meanwhile"
        assert all(other.running for other in others)
        with pytest.raises(RuntimeUnavailableError, match="has not started within 5 s on this host"):
            beginning.result()
    assert not is_running(pid)
    assert runtime.find(asked.route_id) is None
    assert runtime.start(asked).running


def test_who_is_held_is_started_by_nobody_else(replica_home: Path, runtime: ProcessRuntime) -> None:
    asked = request()
    holding, pid = held(runtime, asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("runtime.process.process_runtime._BEGIN_PATIENCE_SECONDS", 0.2)
        assert pid_of(ProcessRuntime(replica_home).start(asked)) == pid
    assert pid_of(runtime._let_begin(holding).replica) == pid
    assert pid_of(ProcessRuntime(replica_home).start(asked)) == pid


def test_who_is_ended_while_it_is_held_was_no_replica(runtime: ProcessRuntime) -> None:
    asked = request()
    holding, pid = held(runtime, asked)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(RuntimeUnavailableError, match="ended before it did"):
        runtime._let_begin(holding)
    assert runtime.find(asked.route_id) is None


HOLDS = """
import os, sys
from pathlib import Path
from uuid import UUID
from runtime.process.process_runtime import ProcessRuntime
from tests.support.workers.runtimes import request
held = ProcessRuntime(Path(sys.argv[1]))._hold(request(route_id=UUID(sys.argv[2])))
print(held.process.child.pid, flush=True)
os._exit(0)
"""


def test_what_a_worker_held_as_it_died_ends_and_is_started_anew(replica_home: Path, runtime: ProcessRuntime) -> None:
    asked = request()
    command = [sys.executable, "-c", HOLDS, str(replica_home), str(asked.route_id)]
    pid = int(subprocess.check_output(command, cwd=ROOT, text=True))
    eventually(lambda: not is_running(pid))
    assert runtime.find(asked.route_id) is None
    assert list(runtime.everyone()) == []
    replica = runtime.start(asked)
    assert replica.running
    assert pid_of(replica) != pid


def test_a_replica_has_three_descriptors_and_no_signal_that_it_did_not_ask_to_ignore(runtime: ProcessRuntime) -> None:
    code = "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))), os.readlink('/proc/self/fd/0'), flush=True)"
    asked = request(("sh", "-c", f'"{sys.executable}" -c "{code}"; exec cat /proc/self/status'))
    runtime.start(asked)
    log = log_of(runtime, asked.route_id, "SigIgn")
    assert log.startswith("[0, 1, 2, 3] /dev/null"), "the last is the folder itself"
    ignored = int(next(line for line in log.splitlines() if line.startswith("SigIgn")).split()[1], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1))


def script(home: Path, content: bytes) -> tuple[str, ...]:
    file = home / "script"
    file.write_bytes(content)
    file.chmod(0o755)
    return (str(file), "a b")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\x00\x01\x02", "is no program of this system"),
        (b"#!/bin/sh\r\necho\r\n", r"needs '/bin/sh\\r' to run, .*: its lines end as on Windows, by CR LF"),
        (b"#!/no/such/python3 -u\n", "needs '/no/such/python3 -u' to run, which was not found on this host"),
    ],
)
def test_a_program_that_cannot_be_run_is_told_with_what_is_wrong(
    replica_home: Path, runtime: ProcessRuntime, content: bytes, sentence: str
) -> None:
    with pytest.raises(ReplicaStartError, match=sentence):
        runtime.start(request(script(replica_home, content)))
    assert list(runtime.everyone()) == []


def test_a_script_without_its_first_line_is_run_by_a_shell(replica_home: Path, runtime: ProcessRuntime) -> None:
    replica = runtime.start(request(script(replica_home, b'echo "$1"\n')))
    assert ended(runtime, replica.route_id).exit_code == 0
    assert runtime.log_tail(replica.route_id, 1) == "a b"


def test_words_and_an_environment_that_no_pipe_holds_at_once_arrive(runtime: ProcessRuntime) -> None:
    many = {f"v{number}": "x" * 10_000 for number in range(40)}
    asked = ReplicaRequest(
        uuid4(), "web", "web-1", RevisionSpec(command=python("import os; print(len(os.environ['v39']))"), env=many)
    )
    runtime.start(asked)
    log_of(runtime, asked.route_id, "10000")


def test_what_is_too_long_for_the_system_is_told(runtime: ProcessRuntime) -> None:
    asked = ReplicaRequest(UUID(int=1), "web", "web-1", RevisionSpec(command=("echo",), env={"v": "x" * 200_000}))
    with pytest.raises(ReplicaStartError, match="cannot be started: Argument list too long"):
        runtime.start(asked)
