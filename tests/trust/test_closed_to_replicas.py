"""A start that the account of a deployment cannot enter: what is closed, and what opens it, before and after `up`."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from domain.replicas.diagnosis import failure_in_short
from domain.revisions.revision import RevisionSpec
from runtime.machine.path_access import Visitor, closed_folders
from runtime.process.accounts import EACH, Accounts
from runtime.process.process_runtime import ProcessRuntime
from runtime.protocol import ReplicaStartError
from tasks.replicas.probing import end_of
from tests.runtime.process.test_process_users import NOBODY, as_user, needs_root
from tests.support.stack.environment import needs_open_clone
from tests.support.workers.runtimes import ROOT, ended, given_back

pytestmark = needs_open_clone
PYTHON = os.path.realpath("/usr/bin/python3")
SERVE = """
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Service(BaseHTTPRequestHandler):
    def do_GET(self):
        body = str(os.getuid()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

ThreadingHTTPServer((os.environ["HOST"], int(os.environ["PORT"])), Service).serve_forever()
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """A folder that every user enters, with an application; and a Python in one that only its owner enters."""

    app: Path
    closed: Path

    @property
    def hidden(self) -> Path:
        return self.closed / "versions" / "bin" / "hidden-python"

    def write(self, name: str, text: str) -> Path:
        file = self.app / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
        return file


@pytest.fixture
def machine() -> Iterator[Machine]:
    with tempfile.TemporaryDirectory() as folder:
        made = Machine(Path(folder) / "app", Path(folder) / "closed")
        Path(folder).chmod(0o755)
        made.hidden.parent.mkdir(parents=True)
        shutil.copy(PYTHON, made.hidden)
        made.write("serve.py", SERVE)
        (made.app / "venv" / "bin").mkdir(parents=True)
        (made.app / "venv" / "bin" / "python").symlink_to(made.hidden)
        made.closed.chmod(0o700)
        yield made


def of_a_link(machine: Machine) -> str:
    assert (machine.app / "venv" / "bin" / "python").is_symlink()
    return "venv/bin/python serve.py"


def of_its_path(machine: Machine) -> str:
    return f"{machine.hidden} serve.py"


def of_a_name_on_the_path(_: Machine) -> str:
    return "hidden-python serve.py"


def of_a_script(machine: Machine) -> str:
    return str(machine.write("run", f"#!{machine.app}/venv/bin/python\n{SERVE}"))


def of_a_script_that_asks_env(machine: Machine) -> str:
    return str(machine.write("run", f"#!/usr/bin/env -S hidden-python -u\n{SERVE}"))


def of_a_script_of_a_script(machine: Machine) -> str:
    inner = machine.write("inner", f"#!{machine.hidden} -u\n{SERVE}")
    return str(machine.write("run", f"#!{inner}\n{SERVE}"))


def of_a_shell(_: Machine) -> str:
    return "sh -c 'exec venv/bin/python serve.py'"


def of_a_script_of_a_shell(machine: Machine) -> str:
    machine.write("start.sh", "#!/bin/sh\ncd /\nexec hidden-python serve.py\n")
    return "./start.sh"


def of_a_copied_environment(machine: Machine) -> str:
    """Whose Python is a copy, and looks for its library where it came from."""
    machine.write("copy/pyvenv.cfg", f"home = {machine.hidden.parent}\nversion = 3.11.2\n")
    machine.write("copy/bin/python", "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'encodings'\"\nexit 1\n")
    return "copy/bin/python serve.py"


def of_what_it_reads(machine: Machine) -> str:
    shutil.copy(machine.app / "serve.py", machine.closed / "serve.py")
    return f"python3 {machine.closed}/serve.py"


STARTS = (
    of_a_link,
    of_its_path,
    of_a_name_on_the_path,
    of_a_script,
    of_a_script_that_asks_env,
    of_a_script_of_a_script,
    of_a_shell,
    of_a_script_of_a_shell,
    of_a_copied_environment,
    of_what_it_reads,
)


def reason_of_a_start(home: Path, accounts: Accounts, command: str, machine: Machine) -> str:
    """The reason of a failed start, as it is written to the route."""
    runtime = ProcessRuntime(home, accounts=accounts)
    told = {"command": command, "working_directory": str(machine.app)}
    told["env"] = {"PATH": f"{machine.hidden.parent}:/usr/bin:/bin"}  # type: ignore[assignment]
    asked = replace(as_user(None), spec=RevisionSpec.model_validate(told))
    try:
        runtime.start(asked)
    except ReplicaStartError as error:
        return failure_in_short(str(error), None)
    return failure_in_short(end_of(ended(runtime, asked.route_id)).detail, runtime.log_tail(asked.route_id, 20))


@needs_root
@pytest.mark.parametrize("accounts", [Accounts(EACH), Accounts(NOBODY)], ids=["an account of its own", "nobody"])
@pytest.mark.parametrize("start", STARTS)
def test_the_reason_names_the_folder_that_is_closed_and_what_opens_it(
    replica_home: Path, machine: Machine, accounts: Accounts, start: object
) -> None:
    assert callable(start)
    reason = reason_of_a_start(replica_home, accounts, start(machine), machine)
    assert f"may not enter {machine.closed}, where {machine.app.parent}/" in reason
    assert f"'chmod o+x {machine.closed}' lets it pass" in reason
    assert "'ROLLWAY_REPLICA_USER=root rollway up' let replicas run as its owner" in reason
    machine.closed.chmod(0o701)
    runtime = ProcessRuntime(replica_home, accounts=accounts)
    assert "may not enter" not in reason_of_a_start_that_may_run(runtime, start(machine), machine)


def reason_of_a_start_that_may_run(runtime: ProcessRuntime, command: str, machine: Machine) -> str:
    told = {"command": command, "working_directory": str(machine.app)}
    told["env"] = {"PATH": f"{machine.hidden.parent}:/usr/bin:/bin"}  # type: ignore[assignment]
    asked = replace(as_user(None), spec=RevisionSpec.model_validate(told))
    runtime.start(asked)
    replica = runtime.find(asked.route_id)
    assert replica
    return replica.cause


@needs_root
def test_each_folder_that_a_umask_has_closed_is_opened_by_one_command(replica_home: Path, machine: Machine) -> None:
    for folder in (machine.closed / "versions", machine.hidden.parent):
        folder.chmod(0o700)
    reason = reason_of_a_start(replica_home, Accounts(EACH), of_a_link(machine), machine)
    opens = f"chmod o+x {machine.closed} {machine.closed}/versions {machine.hidden.parent}"
    assert f"'{opens}' lets it pass" in reason
    subprocess.run(opens.split(), check=True)
    told = {"command": of_a_link(machine), "working_directory": str(machine.app)}
    runtime = ProcessRuntime(replica_home, accounts=Accounts(EACH))
    assert runtime.start(replace(as_user(None), spec=RevisionSpec.model_validate(told))).running


@needs_root
@pytest.mark.parametrize("mode", [0o700, 0o711, 0o744])
def test_a_script_that_its_user_may_not_run_is_named_with_what_lets_it(
    replica_home: Path, machine: Machine, mode: int
) -> None:
    script = machine.write("run", f"#!/usr/bin/python3\n{SERVE}")
    script.chmod(mode)
    reason = reason_of_a_start(replica_home, Accounts(EACH), "./run", machine)
    assert f"may not run {script}: 'chmod o+rx {script}' lets it" in reason


@needs_root
def test_what_a_group_may_enter_is_open_to_its_members(machine: Machine) -> None:
    machine.closed.chmod(0o710)
    os.chown(machine.closed, 0, 4711)
    assert closed_folders(machine.hidden, Visitor(1, frozenset({4711}))) == ()
    assert closed_folders(machine.hidden, Visitor(1, frozenset({4712}))) == (machine.closed,)
    os.chown(machine.closed, 1, 4711)
    assert closed_folders(machine.hidden, Visitor(1)) == ()


@needs_root
def test_what_ends_by_itself_is_told_of_no_folder(replica_home: Path, machine: Machine) -> None:
    """Nor one that another Python stands in, as long as nothing of it is missing."""
    for command in ("sh -c 'echo broken; exit 1'", "python3 -c 'import os; os._exit(3)'"):
        assert "may not enter" not in reason_of_a_start(replica_home, Accounts(EACH), command, machine)


def init(
    machine: Machine, home: Path, command: str, *, user: str = "", **variables: str
) -> "subprocess.CompletedProcess[str]":
    """`rollway init` in the folder of the application, by root or by another user."""
    known = pwd.getpwnam(user or "root")
    whose = ["setpriv", f"--reuid={known.pw_uid}", f"--regid={known.pw_gid}", "--clear-groups"]
    words = [
        sys.executable,
        "-m",
        "cli.main",
        "init",
        "--name",
        "shop",
        "--command",
        command,
        "--patience",
        "10",
        "--port",
        "PORT",
    ]
    environment = {"PATH": f"{machine.hidden.parent}:/usr/bin:/bin", "ROLLWAY_HOME": str(home), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*whose, *words],
        env=environment | variables,
        cwd=machine.app,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def rollway_home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder, given_back(Path(folder)):
        yield Path(folder)


@needs_root
@pytest.mark.parametrize("start", STARTS)
def test_root_hears_of_it_before_a_file_is_written(machine: Machine, rollway_home: Path, start: object) -> None:
    assert callable(start)
    tried = init(machine, rollway_home, start(machine))
    assert tried.returncode == 1, tried.stderr
    assert f"may not enter {machine.closed}" in tried.stderr
    assert list(machine.app.glob("*.yaml")) == []


@needs_root
def test_the_trial_runs_as_whom_the_replica_will(machine: Machine, rollway_home: Path) -> None:
    """A program that is content only where it is that user, within that user's limits."""
    check = "import os, resource; assert os.getuid() {}, os.getuid(); assert resource.getrlimit(7)[1] == 500\n"
    machine.write("serve.py", check.format(">= 30_000 and os.getuid() != 65534") + SERVE)
    limits = {"ROLLWAY_REPLICA_FILES": "500"}
    tried = init(machine, rollway_home, "python3 serve.py", **limits)
    assert tried.returncode == 0, tried.stderr
    assert ", as an account of its own." in tried.stdout
    for user in (NOBODY, "root"):
        (machine.app / "shop.yaml").unlink(missing_ok=True)
        machine.write("serve.py", check.format(f"== {pwd.getpwnam(user).pw_uid}") + SERVE)
        tried = init(machine, rollway_home, "python3 serve.py", ROLLWAY_REPLICA_USER=user, **limits)
        assert tried.returncode == 0, tried.stderr
        assert f", as {user}." in tried.stdout
    assert not [process for process in psutil.process_iter(["cwd"]) if process.info["cwd"] == str(machine.app)]


@needs_root
def test_who_is_not_root_tries_as_the_user_who_will_run_it(machine: Machine, rollway_home: Path) -> None:
    nobody = pwd.getpwnam(NOBODY)
    for folder in (rollway_home, machine.app):
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    machine.write("serve.py", f"import os; assert os.getuid() == {nobody.pw_uid}\n{SERVE}")
    tried = init(machine, rollway_home, "python3 serve.py", user=NOBODY)
    assert tried.returncode == 0, tried.stderr
    (machine.app / "shop.yaml").unlink()
    for start in (of_a_link, of_a_script, of_a_shell):
        tried = init(machine, rollway_home, start(machine), user=NOBODY)
        assert tried.returncode == 1
        assert f"may not enter {machine.closed}, where " in tried.stderr
        assert "ROLLWAY_REPLICA_USER" not in tried.stderr, "who is not root chooses nobody else"


@needs_root
def test_a_trial_ends_nothing_of_the_deployment_of_its_name(machine: Machine, rollway_home: Path) -> None:
    with given_back(rollway_home):
        runtime = ProcessRuntime(rollway_home, accounts=Accounts(EACH))
        live = runtime.start(replace(as_user(None), deployment="shop"))
        tried = init(machine, rollway_home, "python3 serve.py")
        assert tried.returncode == 0, tried.stderr
        assert live.running
        found = runtime.find(live.route_id)
        assert found
        assert found.running
        runtime.kill(live.route_id)
        ended(runtime, live.route_id)
