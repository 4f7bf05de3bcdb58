"""The example for services that have Celery and not Rollway, against a real worker."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.rows.deployments import NOBODY, make_deployment
from tests.support.stack.example import run_example
from tests.support.stack.stack import Fleet


@pytest.fixture
def fleet(database: str, redis_url: str, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(database, redis_url, tmp_path)
    yield fleet
    fleet.end()


@pytest.mark.e2e
def test_it_activates_a_revision_and_prints_the_answer(fleet: Fleet, redis_url: str, tmp_path: Path) -> None:
    make_deployment(fleet.engine, "■■■")
    fleet.start_workers("worker1")
    done = run_example(redis_url, tmp_path, "web", "v2", "because")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"]["activation"] == "begun"
    refused = run_example(redis_url, tmp_path, "web", "v9")
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["error"]["code"] == "revision_not_found"


@pytest.mark.e2e
def test_it_waits_until_the_rollout_ended_by_asking_how_it_is(fleet: Fleet, redis_url: str, tmp_path: Path) -> None:
    make_deployment(fleet.engine, "", n=0)
    fleet.start_workers("worker1")
    done = run_example(redis_url, tmp_path, "--wait", "30", "web", "v2")
    assert done.returncode == 0, done.stderr
    answer, rollout = map(json.loads, done.stdout.splitlines())
    assert rollout["id"] == answer["result"]["rollout_id"]
    assert (rollout["deployment"], rollout["to_revision"], rollout["outcome"]) == ("web", "v2", "completed")
    make_deployment(fleet.engine, "■■■", name="api")
    waited = run_example(redis_url, tmp_path, "--wait", "0", "api", "v2")
    assert waited.returncode == 4, waited.stderr
    assert json.loads(waited.stdout.splitlines()[1])["outcome"] is None


def test_without_redis_it_says_so_and_exits_3(tmp_path: Path) -> None:
    done = run_example(NOBODY, tmp_path, "web", "v2")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("REDIS_URL: Redis cannot be reached")


def test_with_wrong_arguments_it_explains_its_usage(tmp_path: Path) -> None:
    done = run_example(NOBODY, tmp_path, "web")
    assert done.returncode == 2
    assert done.stderr.startswith("usage: ")
