"""`rollway subscribe`, `unsubscribe` and `subscriptions`."""

import json
import re

import pytest
from sqlalchemy import Engine

from tasks.task_settings import KEY_PREFIX
from tasks.worker import connections
from tests.cli.conftest import Rollway
from tests.support.rows.deployments import ask, make_deployment, read, write
from tests.support.rows.hosts import says, up

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
    assert shown["ci"] == "webhook ci deployment.scaled of web 1, since a moment ago 1 - ci answered 500"
    assert shown["shop"] == "task shop.deployed in celery all 2, since a moment ago 0 0"
    connections.redis_client().rpush(f"{KEY_PREFIX}celery", "one", "two")
    assert [view["queued"] for view in json.loads(rollway("subscriptions", "--json").out)] == [None, 2]
    assert [view["given_up"] for view in json.loads(rollway("subscriptions", "--json").out)] == [1, 0]
    doctor = rollway("doctor")
    assert doctor.code == 0
    assert "1 events were given up that ci should have had; the last: ci answered 500" in doctor.out
    assert rollway("unsubscribe", "ci").out == "ci is no longer subscribed\n"
    gone = rollway("unsubscribe", "ci")
    assert (gone.code, gone.err) == (
        1,
        "there is no subscription ci; 'rollway subscriptions' lists those that exist.\n",
    )


def test_what_was_not_delivered_is_sent_now_or_forgotten(rollway: Rollway, engine: Engine) -> None:
    rollway("subscribe", "ci", "--webhook", "ci")
    make_deployment(engine, "")
    for size in (4, 5):
        ask(engine, "scale", deployment="web", desired_replicas=size)
    write(engine, "UPDATE outbox SET due_at = now() + interval '300 s'")
    write(engine, "UPDATE outbox SET given_up_at = now(), why = 'late' WHERE data->>'version' = '2'")
    assert rollway("subscriptions", "--resend", "ci").out == "ci: 2 events sent again now\n"
    assert read(engine, "SELECT 1 FROM outbox WHERE given_up_at IS NULL AND due_at <= now()") == [{"?column?": 1}] * 2
    assert rollway("subscriptions", "--forget", "ci").out == "ci: 2 events forgotten\n"
    assert read(engine, "SELECT 1 FROM outbox") == []
    for option in ("--resend", "--forget"):
        refused = rollway("subscriptions", option, "cd")
        assert (refused.code, "there is no subscription cd" in refused.err) == (1, True)
    assert rollway("subscriptions", "--forget", "ci", "--resend", "ci").code == 2


def test_a_webhook_that_no_host_knows_is_refused_and_who_ended_is_said(rollway: Rollway, engine: Engine) -> None:
    assert rollway("subscribe", "typo", "--webhook", "cj").code == 0, "no host is up: nobody knows"
    up(engine, "old")
    assert rollway("subscribe", "typo", "--webhook", "cj").code == 0, "one of the version before does not say"
    says(engine, "old", webhooks=["ci", "pager"])
    refused = rollway("subscribe", "typo", "--webhook", "cj")
    assert refused.code == 2
    assert refused.err == "no host that is up has a target cj in its ROLLWAY_WEBHOOKS; they have ci, pager.\n"
    assert rollway("subscribe", "ci", "--webhook", "ci").code == 0
    write(engine, "UPDATE subscriptions SET ended_at = now(), ended_why = 'ci answered 410' WHERE name = 'ci'")
    assert "ci answered 410; 'rollway subscribe' begins again" in rollway("subscriptions").out


def test_a_type_that_does_not_exist_is_refused_with_those_that_do(rollway: Rollway) -> None:
    refused = rollway("subscribe", "ci", "--webhook", "ci", "--type", "rollway.rollout.burst")
    assert refused.code == 2
    assert refused.err.startswith("type 1: must be 'rollway.deployment.created'")
