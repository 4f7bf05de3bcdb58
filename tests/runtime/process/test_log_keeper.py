"""The log of a replica: kept by a process of its own, and at no moment larger than it may be."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from domain.installation.settings import LogLimits
from domain.revisions.revision import RevisionSpec
from runtime.process.accounts import EACH, Accounts
from runtime.process.begin.limits import ProcessLimits
from runtime.process.process_logs import ProcessLogs
from runtime.process.process_runtime import ProcessRuntime
from runtime.protocol import ReplicaRequest, ReplicaStartError
from tests.support.proxies import plain_http
from tests.support.stack.waiting import eventually
from tests.support.trust.thief import shared_folder
from tests.support.workers.runtimes import ended, is_running, log_of, pid_of, python, request

SMALL = LogLimits(megabytes=0.5, files=3)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with shared_folder() as folder:
        yield folder


def sizes(home: Path, asked: ReplicaRequest) -> int:
    """Of all files of its log; one that is set aside in this moment counts at the next look."""
    found = 0
    for path in ProcessLogs(home).folder.glob(f"{asked.route_id}*"):
        with suppress(FileNotFoundError):
            found += path.stat().st_size
    return found


def test_a_replica_that_writes_without_end_fills_no_disk_and_is_read_to_its_end(replica_home: Path) -> None:
    """Nobody looks at the sizes of logs here, as where all workers are away."""
    code = "[print(number, 'x' * 1000, flush=True) for number in range(20_000)]; print('the end')"
    runtime, asked = ProcessRuntime(replica_home, limits=ProcessLimits(logs=SMALL)), request(python(code))
    runtime.start(asked)
    largest = 0
    while runtime.find(asked.route_id).running:  # type: ignore[union-attr]
        largest = max(largest, sizes(replica_home, asked))
        time.sleep(0.01)
    most = SMALL.files * SMALL.most_bytes
    assert SMALL.most_bytes < max(largest, sizes(replica_home, asked)) <= most + 65_536
    assert runtime.log_tail(asked.route_id, 1) == "the end"
    assert [path.stat().st_mode & 0o777 for path in ProcessLogs(replica_home).folder.glob(f"{asked.route_id}*")] == [
        0o600
    ] * 3


def test_a_log_outlives_the_worker_that_began_it_and_ends_with_its_replica(replica_home: Path) -> None:
    asked = request(python("import time; print('up', flush=True); time.sleep(60)"))
    runtime = ProcessRuntime(replica_home)
    replica = runtime.start(asked)
    log_of(runtime, asked.route_id, "up")
    record = json.loads((replica_home / "replicas" / f"{asked.route_id}.json").read_text())
    keeper = record["log_keeper"]["pid"]
    assert os.getsid(keeper) != pid_of(replica)
    assert os.getpgid(keeper) == keeper != os.getpgid(0)
    runtime.kill(asked.route_id)
    eventually(lambda: not is_running(keeper))


@pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT MAY CHANGE THE USER, SO THIS IS NOT TESTED HERE")
def test_a_replica_opens_its_output_anew_as_its_account(replica_home: Path) -> None:
    runtime = ProcessRuntime(replica_home, accounts=Accounts(EACH))
    asked = request(("sh", "-c", "echo out > /dev/stdout; echo err > /dev/stderr"))
    runtime.start(asked)
    ended(runtime, asked.route_id)
    assert runtime.log_tail(asked.route_id, 2) == "out\nerr"


def test_with_one_file_the_log_begins_anew(replica_home: Path) -> None:
    code = "for number in range(2000): print(number, 'x' * 1000, flush=True)"
    runtime, asked = (
        ProcessRuntime(replica_home, limits=ProcessLimits(logs=LogLimits(megabytes=0.5, files=1))),
        request(python(code)),
    )
    runtime.start(asked)
    ended(runtime, asked.route_id)
    assert runtime.log_tail(asked.route_id, 1).startswith("1999 ")
    assert [path.name for path in ProcessLogs(replica_home).folder.iterdir()] == [f"{asked.route_id}.log"]
    assert sizes(replica_home, asked) <= 524_288


def test_what_cannot_be_written_is_dropped_and_holds_nobody_up(replica_home: Path) -> None:
    code = "for number in range(2000): print(number, 'x' * 1000, flush=True)"
    runtime, asked = ProcessRuntime(replica_home), request(python(code))
    (ProcessLogs(replica_home).folder / f"{asked.route_id}.log").mkdir(parents=True)
    replica = runtime.start(asked)
    assert ended(runtime, replica.route_id).exit_code == 0


def test_where_no_keeper_can_be_had_the_replica_writes_its_log(
    replica_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.process.process_logs._unbuffered", lambda: "")
    runtime, asked = ProcessRuntime(replica_home), request(python("print('all of it')"))
    runtime.start(asked)
    ended(runtime, asked.route_id)
    assert runtime.log_tail(asked.route_id, 1) == "all of it"


COUNTS = "import time\nn = 0\nwhile True: print(n, 'x' * 500, flush=True); n += 1; time.sleep(0.002)"


def keeper_of(home: Path, asked: ReplicaRequest) -> int:
    return int(json.loads((home / "replicas" / f"{asked.route_id}.json").read_text())["log_keeper"]["pid"])


@pytest.mark.parametrize("whole", [True, False], ids=["all of it", "its shell alone"])
def test_a_replica_whose_keeper_is_killed_goes_on_and_gets_another_one(replica_home: Path, *, whole: bool) -> None:
    runtime, asked = ProcessRuntime(replica_home), request(python(COUNTS))
    replica = runtime.start(asked)
    log_of(runtime, asked.route_id, "x")
    for _ in range(2):
        killed = keeper_of(replica_home, asked)
        (os.killpg if whole else os.kill)(killed, signal.SIGKILL)
        eventually(lambda: not is_running(killed))  # noqa: B023
        found = runtime.find(asked.route_id)
        assert found == replica
        last = int(runtime.log_tail(asked.route_id, 1).split()[0])
        eventually(lambda: int(runtime.log_tail(asked.route_id, 1).split()[0]) > last + 200)  # noqa: B023
        assert is_running(keeper_of(replica_home, asked))
        assert keeper_of(replica_home, asked) != killed
    assert runtime.find(asked.route_id) == replica
    eventually(lambda: [path.name for path in ProcessLogs(replica_home).folder.iterdir()] == [f"{asked.route_id}.log"])


PRINTS = """
import http.server, logging, os, sys
class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        {printing}
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
http.server.HTTPServer((os.environ["HOST"], int(os.environ["PORT"])), Service).serve_forever()
"""


@pytest.mark.parametrize(
    "printing",
    [
        "print('asked', flush=True)",
        "print('asked')",
        "print('asked', file=sys.stderr)",
        "logging.warning('asked')",
        "os.write(1, bytes(range(256)) * 40)",
        "print('x' * 200_000, flush=True)",
        "os.system('echo asked; echo asked >&2')",
    ],
)
def test_a_service_that_prints_at_each_request_loses_none_when_its_keeper_is_killed(
    replica_home: Path, printing: str
) -> None:
    runtime, asked = ProcessRuntime(replica_home), request(python(PRINTS.replace("{printing}", printing)))
    replica = runtime.start(asked)
    url = f"http://{replica.address}/"
    eventually(lambda: plain_http.post(url).is_success, what="it listens")
    killed = keeper_of(replica_home, asked)
    os.killpg(killed, signal.SIGKILL)
    eventually(lambda: not is_running(killed))
    statuses = []
    for _ in range(10):
        runtime.find(asked.route_id)  # as a worker looks, who gives it another keeper
        statuses.append(plain_http.post(url).status_code)
    assert statuses == [200] * 10


@pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT MAY CHANGE THE USER, SO THIS IS NOT TESTED HERE")
@pytest.mark.parametrize("output", ["/etc/hostname", "/dev/zero", "fifo"])
def test_what_a_replica_has_put_in_place_of_its_output_is_not_read(
    replica_home: Path, open_folder: Path, output: str
) -> None:
    """The worker opens it, and may open more than the replica."""
    os.mkfifo(open_folder / "fifo")
    (open_folder / "fifo").chmod(0o666)
    file = open_folder / output  # which an absolute path is not below
    flags = "os.O_RDONLY" if output == "/etc/hostname" else "os.O_RDWR"
    code = f"import os, time\nfor place in (1, 2): os.dup2(os.open('{file}', {flags}), place)\ntime.sleep(60)"
    runtime, asked = ProcessRuntime(replica_home, accounts=Accounts(EACH)), request(("python3", "-c", code))
    replica = runtime.start(asked)
    eventually(lambda: Path(f"/proc/{pid_of(replica)}/fd/1").readlink() == file)
    eventually(
        lambda: not is_running(keeper_of(replica_home, asked)), what="the keeper of a pipe that nobody writes to ends"
    )
    assert runtime.find(asked.route_id) == replica
    assert json.loads((replica_home / "replicas" / f"{asked.route_id}.json").read_text())["log_keeper"] is None
    assert runtime.log_tail(asked.route_id, 1) == ""


LEAVES = """
import os, time
if os.fork() == 0:
    os.setsid()
    os.execve("/bin/sleep", ["sleep", "600"], {})
print("left", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("command", ["./interpreted", "/no/such/program"])
@pytest.mark.parametrize("folder", [".", "missing"])
def test_a_start_that_fails_leaves_nobody_that_writes(replica_home: Path, command: str, folder: str) -> None:
    """Or the folder of a trial could not be removed."""
    script = replica_home / "interpreted"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    spec = RevisionSpec(command=(command,), working_directory=str(replica_home / folder))
    before = own_children()
    for _ in range(20):
        with pytest.raises(ReplicaStartError):
            ProcessRuntime(replica_home).start(replace(request(), spec=spec))
        assert [pid for pid in own_children() - before if is_running(pid)] == []


def own_children() -> set[int]:
    """Those of this thread; a look at all processes would take longer than a log is kept after its end."""
    path = Path(f"/proc/{os.getpid()}/task/{threading.get_native_id()}/children")
    return set(map(int, path.read_text().split()))


def test_a_keeper_ends_with_its_replica_whoever_still_holds_the_log(replica_home: Path) -> None:
    """Without the mark of the route nothing of a replica is found again, but for what its log is held by."""
    runtime, asked = ProcessRuntime(replica_home), request(python(LEAVES))
    replica = runtime.start(asked)
    log_of(runtime, asked.route_id, "left")
    keeper = keeper_of(replica_home, asked)
    left = eventually(lambda: [child.pid for child in psutil.Process(pid_of(replica)).children()])
    os.kill(pid_of(replica), signal.SIGKILL)
    ended(runtime, asked.route_id)
    assert is_running(keeper)
    runtime.forget(asked.route_id)
    eventually(lambda: not is_running(keeper), within=10)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
