"""As whom replicas run, and whose processes are taken for replicas."""

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from domain.revisions.revision import RevisionSpec
from runtime.process.accounts import Accounts
from runtime.process.process_runtime import ProcessRuntime
from runtime.process.process_table import KEEPER, keeper_of
from runtime.protocol import ReplicaRequest, ReplicaStartError
from tests.support.stack.waiting import eventually
from tests.support.workers.runtimes import (
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

NOBODY = "nobody"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT MAY CHANGE THE USER, SO THIS IS NOT TESTED HERE")


def as_user(user: str | None, command: tuple[str, ...] = SLEEPER) -> ReplicaRequest:
    return ReplicaRequest(uuid4(), "web", "web-1", RevisionSpec(command=command, user=user))


@pytest.fixture
def foreign() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes of somebody else."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


@needs_root
def test_a_replica_runs_as_its_user_who_reads_its_files_and_no_secret_of_the_home(replica_home: Path) -> None:
    secret = replica_home / "stack.json"
    secret.write_text("hunter2")
    secret.chmod(0o600)
    replica_home.chmod(0o700)
    code = f"""
import json, os
def reads(path):
    try:
        return open(path, "rb").read(1) is not None
    except PermissionError:
        return False
print(json.dumps([os.getuid(), os.getgroups(), os.environ["HOME"], os.environ["USER"], reads("/etc/hostname"),
                  reads({str(secret)!r}), reads("/proc/{os.getpid()}/environ")]))
"""
    runtime = ProcessRuntime(replica_home, accounts=Accounts(others=(NOBODY,)))
    replica = runtime.start(as_user(NOBODY, ("python3", "-c", code)))
    assert ended(runtime, replica.route_id).exit_code == 0, runtime.log_tail(replica.route_id, 20)
    known = pwd.getpwnam(NOBODY)
    uid, groups, folder, name, *read = json.loads(runtime.log_tail(replica.route_id, 1))
    assert (uid, groups) == (known.pw_uid, os.getgrouplist(NOBODY, known.pw_gid))
    assert (folder, name, read) == (known.pw_dir, NOBODY, [True, False, False])


@needs_root
@pytest.mark.parametrize("names_folder", [True, False], ids=["as its folder", "as its command"])
def test_a_replica_enters_no_folder_that_only_a_closed_one_protects(replica_home: Path, *, names_folder: bool) -> None:
    inner = replica_home / "valkey"
    inner.mkdir()
    (inner / "messages").write_text("hunter2")
    (inner / "program").write_text("#!/bin/sh\n")
    (inner / "program").chmod(0o755)
    replica_home.chmod(0o700)
    spec = (
        RevisionSpec(command=("cat", "messages"), working_directory=str(inner), user=NOBODY)
        if names_folder
        else RevisionSpec(command=(str(inner / "program"),), user=NOBODY)
    )
    runtime = ProcessRuntime(replica_home, accounts=Accounts(others=(NOBODY,)))
    with pytest.raises(ReplicaStartError, match=r"(not a folder|not found) on this host for the user 'nobody'"):
        runtime.start(ReplicaRequest(uuid4(), "web", "web-1", spec))
    assert list(runtime.everyone()) == []


@needs_root
def test_a_replica_of_another_user_is_found_again_without_its_record_and_ended(replica_home: Path) -> None:
    runtime = ProcessRuntime(replica_home, accounts=Accounts(others=(NOBODY,)))
    replica = runtime.start(as_user(NOBODY))
    eventually(lambda: processes_of(replica_home) == [pid_of(replica)])
    (replica_home / "replicas" / f"{replica.route_id}.json").unlink()
    assert list(ProcessRuntime(replica_home).everyone()) == [], "it runs as somebody who is not named"
    again = ProcessRuntime(replica_home, accounts=Accounts(others=(NOBODY,)))
    assert [found.route_id for found in again.everyone()] == [replica.route_id]
    again.kill(replica.route_id)
    eventually(lambda: not is_running(pid_of(replica)))


@pytest.mark.parametrize(
    ("user", "users", "sentence"),
    [
        ("daemon", (), "runs as the user 'daemon', whom ROLLWAY_REPLICA_USERS of this host does not name"),
        ("daemon", (NOBODY,), "does not name"),
        ("nosuchuser", ("nosuchuser",), "the user 'nosuchuser' of revision 'web-1' is not known on this host"),
    ],
)
def test_a_user_who_is_not_allowed_or_not_known_is_refused(
    replica_home: Path, user: str, users: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(ReplicaStartError, match=sentence):
        ProcessRuntime(replica_home, accounts=Accounts(others=users)).start(as_user(user))
    assert list(ProcessRuntime(replica_home).everyone()) == []


@needs_root
def test_a_worker_that_is_not_root_says_that_it_may_not_change_the_user() -> None:
    code = """
import os
from pathlib import Path
from runtime.process.accounts import Accounts, account_of
from runtime.process.account_pool import AccountPool
from runtime.protocol import ReplicaStartError
from tests.runtime.process.test_process_users import as_user
os.setuid(65534)
pool = AccountPool(Path("/nowhere"))
assert account_of(as_user("nobody"), Accounts("nobody"), pool) is None  # it is that user already
try:
    account_of(as_user("daemon"), Accounts("daemon"), pool)
except ReplicaStartError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert "only a worker that runs as root can start it so" in said.stdout, said.stderr


def carrying(home: Path, route_id: UUID | str, port: str) -> dict[str, str]:
    return {**os.environ, KEEPER: keeper_of(home), "ROLLWAY_ROUTE": str(route_id), "PORT": port}


def test_a_replica_of_the_release_before_is_found_by_the_home_that_it_was_told(
    replica_home: Path, runtime: ProcessRuntime, foreign: list[subprocess.Popen[bytes]]
) -> None:
    told = {**os.environ, "ROLLWAY_HOME": str(replica_home), "PORT": "8080"}
    named, other = uuid4(), uuid4()
    foreign.append(subprocess.Popen(SLEEPER, env={**told, "ROLLWAY_ROUTE": str(named)}, start_new_session=True))
    elsewhere = {**told, KEEPER: keeper_of(replica_home / "other"), "ROLLWAY_ROUTE": str(other)}
    foreign.append(subprocess.Popen(SLEEPER, env=elsewhere, start_new_session=True))
    eventually(lambda: [found.route_id for found in runtime.everyone()] == [named])


@needs_root
def test_somebody_elses_process_is_no_replica_whatever_it_carries(
    replica_home: Path, runtime: ProcessRuntime, foreign: list[subprocess.Popen[bytes]]
) -> None:
    own = runtime.start(request(python("import time; print('up', flush=True); time.sleep(60)")))
    log_of(runtime, own.route_id, "up")
    for route_id in (uuid4(), own.route_id):
        carried = carrying(replica_home, route_id, "8080")
        foreign.append(subprocess.Popen(SLEEPER, env=carried, start_new_session=True, user=NOBODY))
    eventually(lambda: len(processes_of(replica_home)) == 3)
    assert [found.route_id for found in runtime.everyone()] == [own.route_id]
    runtime.kill(own.route_id)
    ended(runtime, own.route_id)
    runtime.forget(own.route_id)
    assert [process.poll() for process in foreign] == [None, None]
    for process in foreign:
        process.kill()
        process.wait()


@pytest.mark.parametrize("port", ["tcp://10.0.0.1:80", "", "8080.5"])
def test_an_odd_environment_of_a_foreign_process_breaks_nothing(
    replica_home: Path, runtime: ProcessRuntime, foreign: list[subprocess.Popen[bytes]], port: str
) -> None:
    own = runtime.start(request())
    foreign.append(subprocess.Popen(SLEEPER, env=carrying(replica_home, uuid4(), port), start_new_session=True))
    eventually(lambda: len(processes_of(replica_home)) == 2)
    assert [found.route_id for found in runtime.everyone()] == [own.route_id]
    foreign[0].kill()
    foreign[0].wait()
