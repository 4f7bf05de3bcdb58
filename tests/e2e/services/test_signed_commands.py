"""Commands from a service that has Celery and not Rollway, where workers take signed ones only."""

import json
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.rows.deployments import make_deployment, read
from tests.support.stack.example import run_example
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually
from tests.support.workers.envelopes import envelope
from tests.support.workers.queues import answer_of

pytestmark = pytest.mark.e2e

KEY, OTHER_KEY = "k" * 32, "o" * 32


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text(f"ci = {KEY}\n")
    file.chmod(0o600)
    return file


def test_with_keys_only_signed_commands_are_done_and_the_sender_is_the_actor(
    fleet: Fleet, redis_client: redis.Redis, redis_url: str, keys: Path, tmp_path: Path
) -> None:
    made = make_deployment(fleet.engine, "■■■")
    fleet.start_workers("worker1", ROLLWAY_COMMAND_KEYS=str(keys))

    def ask(**environment: str) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(
            run_example(redis_url, tmp_path, "web", "v2", "because", **environment).stdout
        )
        return told

    assert ask()["error"]["code"] == "unsigned"
    assert ask(ROLLWAY_SENDER="ci", ROLLWAY_KEY=OTHER_KEY)["error"]["code"] == "wrong_signature"
    assert ask(ROLLWAY_SENDER="lena", ROLLWAY_KEY=OTHER_KEY)["error"]["code"] == "wrong_signature"
    message = envelope()
    redis_client.lpush("rollway:lifecycle", json.dumps(message))
    assert answer_of(redis_client, message["headers"]["id"])["result"]["error"]["code"] == "unsigned"
    assert read(fleet.engine, "SELECT 1 FROM commands") == []
    assert ask(ROLLWAY_SENDER="ci", ROLLWAY_KEY=KEY)["result"]["activation"] == "begun"
    asked = read(
        fleet.engine, "SELECT actor FROM deployment_history WHERE deployment_id = %s AND result = 'asked'", made.id
    )
    assert [row["actor"] for row in asked] == ["ci"]
    with keys.open("a") as file:
        file.write(f"lena = {OTHER_KEY}\n")
    assert ask(ROLLWAY_SENDER="lena", ROLLWAY_KEY=OTHER_KEY)["ok"]
    keys.unlink()
    assert ask(ROLLWAY_SENDER="ci", ROLLWAY_KEY=KEY)["error"]["code"] == "invalid_input"


def test_before_keys_are_set_senders_may_sign_already(fleet: Fleet, redis_url: str, tmp_path: Path) -> None:
    make_deployment(fleet.engine, "■■■")
    fleet.start_workers("worker1")
    told = run_example(redis_url, tmp_path, "web", "v2", ROLLWAY_SENDER="ci", ROLLWAY_KEY=KEY)
    assert json.loads(told.stdout)["result"]["activation"] == "begun"


def test_a_worker_does_not_begin_with_keys_that_make_no_sense(fleet: Fleet, keys: Path) -> None:
    keys.write_text("ci = short")
    fleet.begin_worker("worker1", ROLLWAY_COMMAND_KEYS=str(keys))
    eventually(lambda: not fleet.is_running("worker1"))
    log = fleet.log("worker1")
    assert f"ROLLWAY_COMMAND_KEYS: {keys}: line 1 must be 'sender = key'" in log
    assert "Traceback" not in log
