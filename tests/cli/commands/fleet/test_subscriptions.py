"""`rollway subscribe`, `unsubscribe` and `subscriptions`."""

import json
import re

import pytest
from sqlalchemy import Engine

from tests.cli.conftest import Rollway
from tests.support.rows.deployments import ask, make_deployment, write

pytestmark = pytest.mark.usefixtures("servers")


def test_who_is_told_of_what_is_listed_with_how_far_it_has_come(rollway: Rollway, engine: Engine) -> None:
    assert "rollway subscribe" in rollway("subscriptions").out
    said = rollway("subscribe", "ci", "--webhook", "ci", "--type", "rollway.deployment.scaled", "--deployment", "web")
    assert said.out == "ci: the target ci is told from now on\n"
    said = rollway("subscribe", "shop", "--task", "shop.deployed", "--json")
    assert json.loads(said.out)["queue"] == "celery"
    make_deployment(engine, "")
    for size in (4, 5):
        ask(engine, "scale", deployment="web", desired_replicas=size)
    failed = "UPDATE outbox SET why = 'ci answered 500', given_up_at = now() WHERE data->>'version' = '2'"
    write(engine, f"{failed} AND subscription = 'ci'")
    lines = re.sub(r"since \d+ s", "since a moment", rollway("subscriptions").out).splitlines()
    shown = {line.split()[0]: " ".join(line.split()[1:]) for line in lines}
    assert shown["ci"] == "webhook ci deployment.scaled of web 1, since a moment ago 1 ci answered 500"
    assert shown["shop"] == "task shop.deployed in celery all 2, since a moment ago 0"
    assert [view["given_up"] for view in json.loads(rollway("subscriptions", "--json").out)] == [1, 0]
    doctor = rollway("doctor")
    assert doctor.code == 0
    assert "1 events were given up that ci should have had; the last: ci answered 500" in doctor.out
    assert rollway("unsubscribe", "ci").out == "ci is told no more\n"
    gone = rollway("unsubscribe", "ci")
    assert (gone.code, gone.err) == (
        1,
        "there is no subscription ci; 'rollway subscriptions' lists those that exist.\n",
    )


def test_a_type_that_does_not_exist_is_refused_with_those_that_do(rollway: Rollway) -> None:
    refused = rollway("subscribe", "ci", "--webhook", "ci", "--type", "rollway.rollout.burst")
    assert refused.code == 2
    assert refused.err.startswith("types.0: must be 'rollway.deployment.created'")
