"""As whom replicas run whose revision came with a scoped token, and on hosts with an account of theirs."""

import json
import os
import pwd
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.base import ReplicaStartError
from runtime.process.accounts import Accounts
from runtime.process.runtime import ProcessRuntime
from tests.runtime.process.test_process_users import NOBODY, as_user, needs_root
from tests.support.workers.runtimes import ended

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
    home: Path, user: str | None, accounts: Accounts, sentence: str
) -> None:
    asked, runtime = as_user(user), ProcessRuntime(home, accounts=accounts)
    with pytest.raises(ReplicaStartError, match=sentence):
        runtime.start(replace(asked, is_walled=True))
    if sentence != "does not name":
        assert runtime.start(asked).running, "anybody else may choose it"


def test_a_host_may_say_that_there_is_no_wall(home: Path) -> None:
    runtime = ProcessRuntime(home, accounts=Accounts(OWN))
    assert runtime.start(replace(as_user(None), is_walled=True)).running


@needs_root
def test_whose_revision_names_nobody_runs_as_the_usual_account_of_its_host(home: Path) -> None:
    code = "import os, json; print(json.dumps([os.getuid(), os.environ['HOME']]))"
    runtime = ProcessRuntime(home, accounts=Accounts(NOBODY))
    replica = runtime.start(replace(as_user(None, ("python3", "-c", code)), is_walled=True))
    ended(runtime, replica.route_id)
    known = pwd.getpwnam(NOBODY)
    assert json.loads(runtime.log_tail(replica.route_id, 1)) == [known.pw_uid, known.pw_dir]
