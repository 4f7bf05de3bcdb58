import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID, uuid4

import psutil
import pytest

from domain.revisions.revision import RevisionSpec
from runtime.process.process_runtime import ProcessRuntime
from runtime.process.process_table import keeper_of
from runtime.protocol import Replica, ReplicaRequest, ReplicaStartError
from tests.support.stack.waiting import eventually
from tests.support.workers.runtimes import ROOT, ended, log_of, pid_of, processes_of, python, request

STARTS_ONE_ROUTE = """
import sys
from pathlib import Path
from uuid import UUID
from runtime.process.process_runtime import ProcessRuntime
from tests.support.workers.runtimes import request
print(ProcessRuntime(Path(sys.argv[1])).start(request(route_id=UUID(sys.argv[2]))).handle)
"""


def another_worker(home: Path, route_id: UUID) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", STARTS_ONE_ROUTE, str(home), str(route_id)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_eight_threads_asking_for_one_route_start_one_replica(replica_home: Path) -> None:
    asked = request()
    with ThreadPoolExecutor(8) as pool:
        replicas = list(pool.map(lambda _: ProcessRuntime(replica_home).start(asked), range(24)))
    assert len(set(replicas)) == 1
    eventually(lambda: processes_of(replica_home) == [pid_of(replicas[0])])


def test_two_processes_asking_for_one_route_start_one_replica_that_outlives_them(
    replica_home: Path, runtime: ProcessRuntime
) -> None:
    route_id = uuid4()
    workers = [another_worker(replica_home, route_id) for _ in range(2)]
    handles = {worker.communicate(timeout=600)[0].strip() for worker in workers}
    replica = runtime.find(route_id)
    assert replica
    assert replica.running
    assert handles == {replica.handle}
    eventually(lambda: processes_of(replica_home) == [pid_of(replica)])
    assert os.getsid(pid_of(replica)) == pid_of(replica)
    assert runtime.start(request(route_id=route_id)) == replica


def test_an_ended_replica_is_returned_and_not_started_again(replica_home: Path, runtime: ProcessRuntime) -> None:
    asked = request(python("print('once')"))
    runtime.start(asked)
    gone = ended(runtime, asked.route_id)
    assert runtime.start(asked) == gone
    assert ProcessRuntime(replica_home).start(asked) == gone
    assert runtime.log_tail(asked.route_id, 10) == "once"


def test_a_record_without_a_pid_whose_spawn_never_happened_is_started(
    replica_home: Path, runtime: ProcessRuntime
) -> None:
    asked = request()
    runtime.start(request())  # makes the folder
    record = {"route_id": str(asked.route_id), "deployment": "web", "revision": "web-12345678", "port": 20001}
    (replica_home / "replicas" / f"{asked.route_id}.json").write_text(json.dumps(record))
    assert runtime.find(asked.route_id) is None
    assert asked.route_id not in {replica.route_id for replica in runtime.everyone()}
    assert runtime.start(asked).running
    eventually(lambda: len(processes_of(replica_home, asked.route_id)) == 1)


@pytest.mark.parametrize("record", ["unfinished", "broken", "empty", "lost"])
def test_a_replica_whose_pid_was_never_written_is_found_and_not_started_twice(
    replica_home: Path, runtime: ProcessRuntime, record: str
) -> None:
    asked = request()
    started = runtime.start(asked)
    eventually(lambda: processes_of(replica_home) == [pid_of(started)])
    file = replica_home / "replicas" / f"{asked.route_id}.json"
    content = json.loads(file.read_text())
    match record:
        case "unfinished":
            file.write_text(json.dumps(content | {"process": None}))
        case "broken":
            file.write_text(file.read_text()[:40])
        case "empty":
            file.write_text("")
        case _:
            file.unlink()
    assert list(ProcessRuntime(replica_home).everyone()) == [started]
    assert ProcessRuntime(replica_home).start(asked) == started
    assert processes_of(replica_home) == [pid_of(started)]
    assert json.loads(file.read_text()) == content | {"log_keeper": None, "log_pipe": None, "access": None}, (
        "who keeps its log ends with it anyway, and what it began with is known to its record alone"
    )


@pytest.mark.parametrize("record", ["unfinished", "lost"])
def test_start_alone_finds_the_replica_of_a_crashed_worker(
    replica_home: Path, runtime: ProcessRuntime, record: str
) -> None:
    asked = request()
    started = runtime.start(asked)
    eventually(lambda: processes_of(replica_home) == [pid_of(started)])
    file = replica_home / "replicas" / f"{asked.route_id}.json"
    if record == "lost":
        file.unlink()
    else:
        file.write_text(json.dumps(json.loads(file.read_text()) | {"process": None}))
    assert ProcessRuntime(replica_home).start(asked) == started
    assert processes_of(replica_home) == [pid_of(started)]


def test_twenty_concurrent_starts_get_twenty_ports(replica_home: Path) -> None:
    ports = range(27000, 27040)
    with ThreadPoolExecutor(20) as pool:
        replicas = list(pool.map(lambda _: ProcessRuntime(replica_home, ports).start(request()), range(20)))
    assert len({replica.address for replica in replicas}) == 20
    assert all(int(str(replica.address).removeprefix("127.0.0.1:")) in ports for replica in replicas)


def test_no_port_that_somebody_listens_on_is_given_and_a_full_range_is_told(replica_home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        runtime = ProcessRuntime(replica_home, range(port, port + 1))
        with pytest.raises(ReplicaStartError, match=f"no port from {port} to {port} is free"):
            runtime.start(request())
    assert list(runtime.everyone()) == []


def test_the_port_of_an_ended_replica_is_free_again(replica_home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    runtime = ProcessRuntime(replica_home, range(port, port + 1))
    first = runtime.start(request(python("pass")))
    eventually(lambda: ended(runtime, first.route_id))
    assert runtime.start(request()).address == first.address


def test_a_replica_knows_who_it_is_and_no_secret_of_the_worker_or_of_the_shell_that_started_it(
    replica_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = ProcessRuntime(
        replica_home, also=("KEPT", "HF_*", "DATABASE_*", "ROLLWAY_*")
    )  # a pattern that is too wide
    of_rollway = ("DATABASE_URL", "ROLLWAY_HOME", "ROLLWAY_PROXY_KEY", "ROLLWAY_TOKEN")
    for name in (*of_rollway, "PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "KEPT_BACK"):
        monkeypatch.setenv(name, "hunter2")
    for name in ("KEPT", "LC_TIME", "CUDA_VISIBLE_DEVICES", "HF_HOME"):
        monkeypatch.setenv(name, "yes")
    code = "import json, os; print(json.dumps(dict(os.environ)), os.getcwd(), os.read(0, 1))"
    own = {"COLOUR": "blue", "PORT": "1", "ROLLWAY_ROUTE": "mine", "REDIS_URL": "redis://of-the-service"}
    spec = RevisionSpec(command=python(code), env=own, working_directory=str(replica_home))
    replica = runtime.start(ReplicaRequest(uuid4(), "web", "web-12345678", spec))
    ended(runtime, replica.route_id)
    log = runtime.log_tail(replica.route_id, 10)
    env = json.loads(log[: log.rindex("}") + 1])
    assert "hunter2" not in log
    assert log.endswith(f"{replica_home} b''")
    assert [env[name] for name in ("KEPT", "LC_TIME", "CUDA_VISIBLE_DEVICES", "HF_HOME")] == ["yes"] * 4
    assert env["COLOUR"] == "blue"
    assert env["REDIS_URL"] == "redis://of-the-service"
    assert f"127.0.0.1:{env['PORT']}" == replica.address
    assert env["ROLLWAY_DEPLOYMENT"] == "web"
    assert env["ROLLWAY_REVISION"] == "web-12345678"
    assert env["ROLLWAY_ROUTE"] == str(replica.route_id)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (RevisionSpec(command=("no-such-command",)), "'no-such-command' of revision 'web-1' was not found"),
        (RevisionSpec(command=("./a-file",), working_directory="."), "'./a-file' .* is not an executable file"),
        (RevisionSpec(command=("sleep", "1"), working_directory="/no/such"), "'/no/such' .* is not a folder"),
        (RevisionSpec(command=("sl\0eep",)), "cannot be started: embedded null byte"),
    ],
)
def test_what_cannot_be_started_is_told_in_a_sentence_and_not_remembered(
    replica_home: Path, runtime: ProcessRuntime, spec: RevisionSpec, sentence: str
) -> None:
    (replica_home / "a-file").write_text("echo")
    if spec.working_directory == ".":
        spec = spec.model_copy(update={"working_directory": str(replica_home)})
    asked = ReplicaRequest(uuid4(), "web", "web-1", spec)
    with pytest.raises(ReplicaStartError, match=sentence):
        runtime.start(asked)
    assert runtime.find(asked.route_id) is None
    assert list((replica_home / "replicas").glob("*.json")) == []


def test_a_replica_ignores_the_ctrl_c_of_its_worker(replica_home: Path, runtime: ProcessRuntime) -> None:
    replica: Replica = runtime.start(request(python("import time; print('up', flush=True); time.sleep(60)")))
    log_of(runtime, replica.route_id, "up")
    assert os.getpgid(pid_of(replica)) != os.getpgid(0)
    assert psutil.Process(pid_of(replica)).environ()["ROLLWAY_KEEPER"] == keeper_of(replica_home)
