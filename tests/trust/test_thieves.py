"""A thief for each role: what it gets by letting a program of its own run, with a token and nothing else."""

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from db.connection.transactions import in_transaction
from db.replicas.host_routes import routes_to_start
from domain.installation.tokens import Role
from runtime.process.accounts import EACH, Accounts
from runtime.process.process_runtime import ProcessRuntime
from runtime.protocol import ReplicaStartError
from tasks.replicas.host_replicas import request_of
from tests.support.people.people_api import People
from tests.support.rows.deployments import HERE, make_deployment, read, write
from tests.support.stack.waiting import eventually
from tests.support.workers.runtimes import ended, pid_of, request

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT MAY CHANGE THE USER, SO THIS IS NOT TESTED HERE")
WALL, NO_WALL = Accounts(EACH), Accounts()
OWN = pwd.getpwuid(os.geteuid()).pw_name

THIEF = """
import json, os, sys
def reads(path):
    try:
        return bool(open(path, "rb").read(1))
    except OSError:
        return False
def may_end(pid):
    try:
        os.kill(pid, 0)
        return True
    except OSError:
        return False
home, worker = sys.argv[1], int(sys.argv[2])
told = " ".join(name + "=" + value for name, value in os.environ.items())
print(json.dumps({
    "passwords": reads(home + "/stack.json"),
    "environment of the worker": reads(f"/proc/{worker}/environ"),
    "end the worker": may_end(worker),
    "told": any(word in told for word in (home, "postgresql://", "redis://")),
}))
"""
NOTHING = {"passwords": False, "environment of the worker": False, "end the worker": False, "told": False}
ALL_BUT_TOLD = {"passwords": True, "environment of the worker": True, "end the worker": True, "told": False}
REFUSED, NOT_STARTED = "not_allowed", "not started"


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The pid of a process of the workers' user, whose environment holds passwords; ours holds them too."""
    for name, url in (("DATABASE_URL", "postgresql://u:p@h/db"), ("REDIS_URL", "redis://:p@h")):
        monkeypatch.setenv(name, url)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process.pid
        process.kill()


@dataclass(frozen=True)
class Stage:
    people: People
    home: Path
    worker: int

    def loot(self, role: Role, accounts: Accounts, user: str | None = None, *, is_scoped: bool) -> object:
        """What the thief's program says that it got on a host with these accounts; else why it did not run."""
        made = make_deployment(self.people.engine, "■■■", name=f"web-{uuid4().hex[:6]}")
        spec = {"command": ["python3", "-c", THIEF, str(self.home), str(self.worker)], "user": user}
        with self.people.client(role, *([made.name] if is_scoped else [])) as thief:
            answer = thief.post(f"/v1/deployments/{made.name}/revisions", json={"name": "mine", "spec": spec})
        if answer.is_error:
            return answer.json()["code"]
        added = answer.json()["revision_id"]
        placed = f"revision_id = '{added}', status = 'provisioning', started_at = NULL, next_start_at = NULL"
        write(self.people.engine, f"UPDATE routes SET {placed} WHERE id = '{made.routes[0]}'")
        routes = in_transaction(self.people.engine, lambda connection: routes_to_start(connection, HERE, 100))
        (route,) = [route for route in routes if route.id == made.routes[0]]
        runtime = ProcessRuntime(self.home, accounts=accounts)
        try:
            runtime.start(request_of(route))
        except ReplicaStartError:
            return NOT_STARTED
        ended(runtime, route.id)
        return json.loads(eventually(lambda: runtime.log_tail(route.id, 1)))


@pytest.fixture
def stage(people_server: People, replica_home: Path, worker: int) -> Stage:
    replica_home.chmod(0o700)
    secret = replica_home / "stack.json"
    secret.write_text("hunter2")
    secret.chmod(0o600)
    return Stage(people_server, replica_home, worker)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.RELEASER])
def test_who_adds_nothing_lets_nothing_run(stage: Stage, role: Role) -> None:
    assert [stage.loot(role, NO_WALL, is_scoped=scoped) for scoped in (True, False)] == [REFUSED] * 2


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMIN])
def test_a_thief_for_one_deployment_gets_nothing_wherever_it_runs(stage: Stage, role: Role) -> None:
    assert stage.loot(role, WALL, is_scoped=True) == NOTHING
    assert stage.loot(role, NO_WALL, is_scoped=True) == NOT_STARTED
    named = Accounts(EACH, (OWN, "daemon"))
    assert [stage.loot(role, named, user, is_scoped=True) for user in (OWN, "daemon")] == [NOT_STARTED, NOTHING]


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMIN])
def test_a_thief_for_all_deployments_gets_what_the_host_lets_it(stage: Stage, role: Role) -> None:
    """Behind the wall nothing. Without one, or where the host lets revisions name the workers' user, all."""
    assert stage.loot(role, WALL, is_scoped=False) == NOTHING
    assert stage.loot(role, NO_WALL, is_scoped=False) == ALL_BUT_TOLD
    assert stage.loot(role, Accounts(EACH, (OWN,)), OWN, is_scoped=False) == ALL_BUT_TOLD


def test_replicas_of_one_user_that_is_named_reach_each_other(stage: Stage) -> None:
    """A user that the host names is one for all. Who must not reach each other gets none, or containers."""
    named = Accounts("daemon")
    other = ProcessRuntime(stage.home, accounts=named).start(request())
    reached = Stage(stage.people, stage.home, pid_of(other)).loot(Role.OPERATOR, named, is_scoped=True)
    assert reached == NOTHING | {"environment of the worker": True, "end the worker": True}


def test_replicas_of_two_deployments_do_not_reach_each_other(stage: Stage) -> None:
    other = ProcessRuntime(stage.home, accounts=WALL).start(request())
    assert Stage(stage.people, stage.home, pid_of(other)).loot(Role.OPERATOR, WALL, is_scoped=True) == NOTHING


def test_what_is_restarted_keeps_its_wall_and_gets_none(people_server: People) -> None:
    """Whoever restarts it: a restart is a revision with the same content, and adds nothing of its own."""
    for is_walled in (True, False):
        made = make_deployment(people_server.engine, "■■■", name=f"web-{uuid4().hex[:6]}")
        write(people_server.engine, "UPDATE revisions SET is_walled = %s WHERE deployment_id = %s", is_walled, made.id)
        before = read(people_server.engine, "SELECT id FROM revisions WHERE deployment_id = %s", made.id)
        with people_server.client(Role.RELEASER, made.name) as client:
            answer = client.post(f"/v1/deployments/{made.name}/restart", json={})
            assert answer.status_code == 200, answer.text
        found = read(people_server.engine, "SELECT is_walled FROM revisions WHERE deployment_id = %s", made.id)
        assert [row["is_walled"] for row in found] == [is_walled] * (len(before) + 1)
