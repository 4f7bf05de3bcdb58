"""Two people and a service steer one deployment at once: over HTTP, by the command line and by Celery."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import httpx
import pytest

from db.audit.invariants import impossible_combinations
from db.connection.transactions import in_transaction
from domain.installation.tokens import Role
from tasks.messaging.queues import COMMANDS_QUEUE, queue
from tests.support.people.people_api import People, serving_people
from tests.support.people.soak_report import leave, size
from tests.support.rows.rows import history
from tests.support.stack.stack import Fleet

pytestmark = pytest.mark.e2e

EACH = size("steering", quick=5)
"""Commands of each of the three."""
VERBS = ("scale", "scale", "activate", "pause", "resume", "abort", "undo")
REFUSED = {
    "stale_version",
    "deployment_already_in_progress",
    "no_rollout",
    "wrong_state",
    "already_undone",
    "no_previous_revision",
}
Answer = dict[str, Any]


@pytest.fixture
def server_of_web(fleet: Fleet, database: str, redis_url: str, tmp_path: Path) -> Iterator[People]:
    with serving_people(database, redis_url, tmp_path) as made:
        fleet.start_workers("worker1")
        fleet.start_beat()
        fleet.deploy_first(replicas=2)
        fleet.add_revision("web", "v2")
        yield made


def wish(dice: Random) -> tuple[str, dict[str, Any]]:
    """What somebody wants next."""
    match dice.choice(VERBS):
        case "scale":
            return "scale", {"desired_replicas": dice.randint(1, 4)}
        case "activate":
            return "activate", {"revision": dice.choice(("v1", "v2"))}
        case verb:
            return verb, {}


def by_http(client: httpx.Client) -> Callable[[str, dict[str, Any]], Answer]:
    """Ann sends the version that she saw."""

    def ask(verb: str, fields: dict[str, Any]) -> Answer:
        seen = client.get("/v1/deployments/web").headers["etag"]
        told = client.post(f"/v1/deployments/web/{verb}", json=fields, headers={"if-match": seen})
        return {"ok": told.is_success, **({"result": told.json()} if told.is_success else {"error": told.json()})}

    return ask


def by_command_line(people: People) -> Callable[[str, dict[str, Any]], Answer]:
    """Bob types what he wants, whatever the version is."""
    given = {"ROLLWAY_URL": people.server.url, "ROLLWAY_TOKEN": people.token(Role.OPERATOR, name="bob")}

    def ask(verb: str, fields: dict[str, Any]) -> Answer:
        words = ["web", *map(str, fields.values()), "--json"]
        command = [sys.executable, "-m", "cli.main", verb, *words]
        done = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True, check=False)
        told = json.loads(done.stdout)
        assert done.returncode == (1 if "error" in told else 0), done
        return {"ok": False, **told} if "error" in told else {"ok": True, "result": told}

    return ask


def by_celery(fleet: Fleet) -> Callable[[str, dict[str, Any]], Answer]:
    """The service sends the version that it was told."""

    def send(task: str, **payload: Any) -> Answer:
        arguments = {"payload": {"deployment": "web", "actor": "ci", **payload}}
        sent = fleet.producer.send_task(
            f"rollway.{task}", kwargs=arguments, queue=queue(COMMANDS_QUEUE), ignore_result=False
        )
        answer: Answer = sent.get(timeout=300)
        return answer

    def ask(verb: str, fields: dict[str, Any]) -> Answer:
        version = send("get_deployment")["result"]["version"]
        task = "activate_revision" if verb == "activate" else verb
        return send(task, expected_version=version, request_id=uuid4().hex, **fields)

    return ask


def changed(answer: Answer) -> bool:
    """To be scaled to the size that it has, or to do what is done already, changes nothing."""
    result = answer.get("result", {"already": True})
    return not result["already"] and result.get("from", 0) != result.get("to", -1)


def test_each_is_told_who_won_and_the_history_names_all(fleet: Fleet, server_of_web: People) -> None:
    def steer(who: tuple[str, Callable[[str, dict[str, Any]], Answer]]) -> list[tuple[str, Answer]]:
        name, ask = who
        dice = Random(f"{name} {EACH}")
        wishes = [wish(dice) for _ in range(EACH)]
        return [(verb, ask(verb, fields)) for verb, fields in wishes]

    with server_of_web.client(Role.OPERATOR, name="ann") as client, ThreadPoolExecutor(3) as threads:
        ways = {"ann": by_http(client), "bob": by_command_line(server_of_web), "ci": by_celery(fleet)}
        told = dict(zip(ways, threads.map(steer, ways.items()), strict=True))
    answers = [answer for mine in told.values() for _, answer in mine]
    refusals = [answer["error"] for answer in answers if not answer["ok"]]
    assert {refusal["code"] for refusal in refusals} <= REFUSED, refusals
    for stale in (refusal for refusal in refusals if refusal["code"] == "stale_version"):
        assert "the last to steer it was" in stale.get("detail" if "status" in stale else "message"), stale
    done = {name: Counter(verb for verb, answer in mine if changed(answer)) for name, mine in told.items()}
    versions = [answer["result"]["version"] for answer in answers if changed(answer)]
    assert len(versions) == len(set(versions)) > 0, "no version was won by two"
    noted = {name: Counter[str]() for name in ways}
    for row in history(fleet.engine):
        if row["result"] == "asked" and row["actor"] in noted:
            noted[row["actor"]][row["phase"]] += 1
    assert noted == done
    assert in_transaction(fleet.engine, impossible_combinations) == []
    leave("steering", checks=len(answers), done=len(versions), refused=dict(Counter(each["code"] for each in refusals)))
