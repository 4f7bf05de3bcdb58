"""Redis behind TLS: workers, locks, wakes, commands and answers; and an authority that nobody trusts."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from stack.home.folder import project_root
from stack.parts.external_servers import check_redis
from stack.stack_errors import StackError
from tests.support.faults.tls import make_authority, tls_in_front_of
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e


@pytest.fixture
def tls_url(redis_url: str, tmp_path: Path) -> Iterator[str]:
    """Without the name of an authority."""
    parts = urlsplit(redis_url)
    assert parts.port
    with tls_in_front_of(parts.port, tmp_path / "tls") as port:
        yield f"rediss://:{parts.password}@127.0.0.1:{port}/0"


@pytest.fixture
def trusted(tls_url: str, tmp_path: Path) -> str:
    return f"{tls_url}?ssl_ca_certs={tmp_path / 'tls' / 'ca.pem'}"


@pytest.fixture
def tls_fleet(database: str, trusted: str, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(database, trusted, tmp_path)
    yield fleet
    fleet.end()


def rollway(fleet: Fleet, redis_url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **fleet.environment, "REDIS_URL": redis_url}
    command = [sys.executable, "-m", "cli.main", *arguments]
    return subprocess.run(
        command, cwd=project_root(), env=environment, capture_output=True, text=True, check=False, timeout=900
    )


def test_a_rollout_and_a_command_go_through_a_redis_behind_tls(tls_fleet: Fleet, trusted: str) -> None:
    assert check_redis(trusted).startswith("127.0.0.1:")
    tls_fleet.start_workers("worker1")
    tls_fleet.deploy_first(replicas=1)
    assert rollway(tls_fleet, trusted, "slots", "2").stdout == "2 for each handler\n"
    example = str(project_root() / "examples" / "enqueue_activate_revision.py")
    environment = {"PATH": os.environ["PATH"], "REDIS_URL": f"{trusted}&ssl_cert_reqs=required"}
    told = subprocess.run(
        [sys.executable, example, "web", "v9"],
        env=environment, capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert json.loads(told.stdout)["error"]["code"] == "revision_not_found", told.stderr


def test_an_authority_that_is_not_trusted_is_refused_in_one_sentence(
    tls_fleet: Fleet, tls_url: str, tmp_path: Path
) -> None:
    for url in (tls_url, f"{tls_url}?ssl_ca_certs={make_authority(tmp_path / 'other')}"):
        with pytest.raises(StackError, match=r"^REDIS_URL: the certificate of Redis at .* is not trusted \(.*\): name"):
            check_redis(url)
        told = rollway(tls_fleet, url, "slots")
        assert (told.returncode, told.stderr.count("\n")) == (3, 1)
        assert "certificate verify failed" in told.stderr
    tls_fleet.begin_worker("stranger", REDIS_URL=tls_url)
    eventually(lambda: "certificate verify failed" in tls_fleet.log("stranger"), what="the worker to say why")
    assert "Traceback" not in tls_fleet.log("stranger")
