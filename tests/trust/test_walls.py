"""As whom replicas run whose revision came with a scoped token, and on hosts with an account of theirs."""

import json
import os
import pwd
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from domain.revisions.revision import RevisionSpec
from runtime.machine.path_access import way_in
from runtime.process.accounts import EACH, POSTGRES_USER, Accounts
from runtime.process.process_runtime import ProcessRuntime
from runtime.protocol import ReplicaStartError
from stack.parts.postgres_account import choose_account, installed_tree
from tests.runtime.process.test_process_users import NOBODY, as_user, needs_root
from tests.support.stack.waiting import eventually
from tests.support.workers.runtimes import ROOT, ended, pid_of, processes_of

OWN = pwd.getpwuid(os.geteuid()).pw_name


@pytest.mark.parametrize(
    ("user", "accounts", "sentence"),
    [
        (None, Accounts(), "added with a token for some deployments, .* and ROLLWAY_REPLICA_USER names no other one"),
        (OWN, Accounts(others=(OWN,)), "added with a token for some deployments, .* whom it names"),
        (OWN, Accounts(NOBODY), "does not name"),
    ],
)
def test_what_a_scoped_token_added_does_not_run_as_the_workers_own_user(
    replica_home: Path, user: str | None, accounts: Accounts, sentence: str
) -> None:
    asked, runtime = as_user(user), ProcessRuntime(replica_home, accounts=accounts)
    with pytest.raises(ReplicaStartError, match=sentence):
        runtime.start(replace(asked, is_walled=True))
    if sentence != "does not name":
        assert runtime.start(asked).running, "anybody else may choose it"


def test_a_host_may_say_that_there_is_no_wall(replica_home: Path) -> None:
    runtime = ProcessRuntime(replica_home, accounts=Accounts(OWN))
    assert runtime.start(replace(as_user(None), is_walled=True)).running


@needs_root
def test_whose_revision_names_nobody_runs_as_the_usual_account_of_its_host(replica_home: Path) -> None:
    code = "import os, json; print(json.dumps([os.getuid(), os.environ['HOME']]))"
    runtime = ProcessRuntime(replica_home, accounts=Accounts(NOBODY))
    replica = runtime.start(replace(as_user(None, ("python3", "-c", code)), is_walled=True))
    ended(runtime, replica.route_id)
    known = pwd.getpwnam(NOBODY)
    assert json.loads(runtime.log_tail(replica.route_id, 1)) == [known.pw_uid, known.pw_dir]


@needs_root
def test_a_user_that_has_a_part_of_the_home_is_no_replicas_user(replica_home: Path) -> None:
    """Whoever named it: the host for all, or a revision among those that the host lets it."""
    data = replica_home / "postgres" / "data"
    data.mkdir(parents=True)
    os.chown(data, pwd.getpwnam(NOBODY).pw_uid, -1)
    for accounts, user, field in (
        (Accounts(NOBODY), None, "ROLLWAY_REPLICA_USER"),
        (Accounts(EACH, (NOBODY,)), NOBODY, "`user` of the revision"),
    ):
        with pytest.raises(ReplicaStartError, match=rf"the user 'nobody' \({field}\), who owns {data}: name a user"):
            ProcessRuntime(replica_home, accounts=accounts).start(as_user(user))
    assert processes_of(replica_home) == []
    os.chown(data, 0, -1)
    assert ProcessRuntime(replica_home, accounts=Accounts(NOBODY)).start(as_user(None)).running


@needs_root
def test_the_account_of_postgres_is_no_replicas_user_wherever_its_data_is(replica_home: Path) -> None:
    choose_account(installed_tree())
    with pytest.raises(ReplicaStartError, match="who runs PostgreSQL: name a user that runs nothing else"):
        ProcessRuntime(replica_home, accounts=Accounts(EACH, (POSTGRES_USER,))).start(as_user(POSTGRES_USER))


@needs_root
def test_each_deployment_runs_as_its_own_account_and_its_files_are_for_it_alone(replica_home: Path) -> None:
    code = (
        "import os, json; os.umask(u := os.umask(0)); print(json.dumps([os.getuid(), os.getgid(), os.getgroups(), u]))"
    )
    runtime, said = ProcessRuntime(replica_home, accounts=Accounts(EACH)), []
    for deployment in ("web", "other", "web"):
        asked = replace(as_user(None, ("python3", "-c", code)), deployment=deployment, is_walled=True)
        ended(runtime, runtime.start(asked).route_id)
        said.append(json.loads(runtime.log_tail(asked.route_id, 1)))
    (uid, gid, groups, umask), other, again = said
    assert (uid, groups, umask) == (gid, [], 0o077)
    assert other[0] != uid
    assert again == [uid, gid, groups, umask]


@needs_root
def test_a_replica_without_its_record_is_found_as_its_deployments_account_alone(replica_home: Path) -> None:
    runtime = ProcessRuntime(replica_home, accounts=Accounts(EACH))
    replica = runtime.start(as_user(None))
    eventually(lambda: processes_of(replica_home) == [pid_of(replica)])
    (replica_home / "replicas" / f"{replica.route_id}.json").unlink()
    assert [found.route_id for found in ProcessRuntime(replica_home).everyone()] == [replica.route_id], (
        "by another worker too"
    )
    (replica_home / "replicas" / f"{replica.route_id}.json").unlink()
    noted = replica_home / "accounts.json"
    noted.write_text(noted.read_text().replace("web", "other"))
    assert list(ProcessRuntime(replica_home).everyone()) == [], "it runs as the account of another deployment"
    noted.write_text(noted.read_text().replace("other", "web"))


@needs_root
def test_replicas_of_the_account_that_all_once_had_go_on_and_are_ended(
    replica_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of a home before each deployment had its own; daemon stands for rollway-replica."""
    before = ProcessRuntime(replica_home, accounts=Accounts("daemon"))
    recorded, lost = before.start(as_user(None)), before.start(as_user(None))
    eventually(lambda: len(processes_of(replica_home)) == 2)
    (replica_home / "replicas" / f"{lost.route_id}.json").unlink()
    monkeypatch.setattr("runtime.process.accounts.REPLICA_USER", "daemon")
    after = ProcessRuntime(replica_home, accounts=Accounts(EACH))
    assert {found.route_id for found in after.everyone() if found.running} == {recorded.route_id, lost.route_id}
    for replica in (recorded, lost):
        after.terminate(replica.route_id)
        ended(after, replica.route_id)
    assert processes_of(replica_home) == []


def test_who_is_not_root_hears_that_accounts_take_root() -> None:
    code = """
import os
from pathlib import Path
from runtime.process.accounts import EACH, Accounts, account_of
from runtime.process.account_pool import AccountPool
from runtime.protocol import ReplicaStartError
from tests.runtime.process.test_process_users import as_user
os.geteuid() or os.setuid(65534)
try:
    account_of(as_user(None), Accounts(EACH), AccountPool(Path("/nowhere")))
except ReplicaStartError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert "is @deployment, and only a worker that runs as root can start replicas so" in said.stdout, said.stderr


@needs_root
@pytest.mark.parametrize("names_folder", [True, False], ids=["its folder", "its command"])
def test_a_start_that_fails_for_a_closed_folder_names_it_and_what_opens_it(
    replica_home: Path, tmp_path_factory: pytest.TempPathFactory, *, names_folder: bool
) -> None:
    """As where a virtual environment's Python is a link to one below /root."""
    behind = tmp_path_factory.mktemp("behind") / "bin"
    behind.mkdir(parents=True)
    shutil.copy("/bin/sh", behind / "python")
    link = behind.parent / "python"
    link.symlink_to(behind / "python")
    closed = [path for path in (*reversed(behind.parents), behind) if not path.stat().st_mode & 0o001]
    command = ("env",) if names_folder else (str(link),)
    spec = RevisionSpec(command=command, working_directory=str(behind) if names_folder else "/")
    with pytest.raises(ReplicaStartError) as raised:
        ProcessRuntime(replica_home, accounts=Accounts(EACH)).start(replace(as_user(None), spec=spec))
    assert f"may not enter {closed[0]}, where {behind if names_folder else link} leads: " in str(raised.value)
    assert f"'chmod o+x {' '.join(map(str, closed))}' lets it pass" in str(raised.value)


@needs_root
def test_nobody_is_told_to_open_the_home_or_roots_own_folder(replica_home: Path) -> None:
    inner = replica_home / "valkey"
    inner.mkdir()
    replica_home.chmod(0o700)
    open_parents = [path for path in replica_home.parents if not path.stat().st_mode & 0o001]
    of_root = Path("~root").expanduser()
    for folder, closed in ((inner, (open_parents or [replica_home])[-1]), (of_root / "x", of_root)):
        spec = RevisionSpec(command=("env",), working_directory=str(folder))
        with pytest.raises(ReplicaStartError) as raised:
            ProcessRuntime(replica_home, accounts=Accounts(EACH)).start(replace(as_user(None), spec=spec))
        assert f"may not enter {closed}" in str(raised.value)
        assert f"chmod o+x {replica_home}'" not in str(raised.value)
    assert "chmod" not in str(raised.value)
    assert "put what is run where every user may enter, as in /opt or /srv" in str(raised.value)


@needs_root
def test_a_link_that_may_not_be_followed_leads_to_no_folder() -> None:
    code = (
        "import os; from pathlib import Path; from runtime.machine.path_access import closed_folder\nos.setuid(65534)\n"
    )
    code += "print(closed_folder(Path('/proc/1/root/root')))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert output.stdout == "None\n", output.stderr


@needs_root
def test_who_may_not_read_what_root_has_compiled_starts_replicas_from_the_source(tmp_path: Path) -> None:
    compiled = tmp_path / "compiled"
    compiled.mkdir(mode=0o700)
    code = "import os; from runtime.process.begin import spawn\nos.setuid(65534)\nprint(spawn._program())"
    own = {"PYTHONPYCACHEPREFIX": str(compiled), "PATH": os.environ["PATH"]}
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT, env=own
    )
    assert output.stdout.strip().endswith("runtime/process/begin/become.py"), output.stderr


def test_what_is_told_of_a_closed_folder_never_opens_the_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert "chmod" not in way_in([tmp_path, home / "postgres"], home)
    assert way_in([tmp_path], home).startswith(f"'chmod o+x {tmp_path}' lets it pass; or 'rollway down' and ")


LOADED = {"LD_SHOW_AUXV": "1", "LD_DEBUG": "all", "GLIBC_TUNABLES": "x", "BASH_FUNC_umask%%": "() { id; }", "ENV": "/x"}


@needs_root
@pytest.mark.parametrize("name", LOADED)
def test_no_variable_of_a_deployment_holds_up_another_one(replica_home: Path, name: str) -> None:
    """What obeys it is the command, as its account: so it says what it says into the log of its own replica."""
    runtime = ProcessRuntime(replica_home, accounts=Accounts(EACH))
    spec = RevisionSpec(command=("sleep", "60"), env={name: LOADED[name]})
    thief = runtime.start(replace(as_user(None), deployment="other", is_walled=True, spec=spec))
    assert psutil.Process(pid_of(thief)).uids().real != os.getuid()
    assert psutil.Process(pid_of(thief)).environ()[name] == LOADED[name]
    assert runtime.start(as_user(None)).running
    runtime.kill(thief.route_id)
    ended(runtime, thief.route_id)
