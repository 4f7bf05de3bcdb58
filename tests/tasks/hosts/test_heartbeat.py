"""What a worker says of its host with each heartbeat."""

from sqlalchemy import Engine

from domain.devices.needs import parse_resources
from tasks.hosts.heartbeat import Heartbeat
from tests.support.rows.deployments import HERE, read
from tests.support.rows.hosts import says, up
from tests.support.rows.sent_statements import sent_by

FACTS = "SELECT labels, resources, secrets_for_all, webhooks, unasked_since IS NOT NULL AS is_unasked FROM hosts"


def test_one_statement_carries_all_that_a_worker_says_of_its_host(engine: Engine) -> None:
    giver = Heartbeat(
        engine,
        HERE,
        "127.0.0.1",
        webhooks=lambda: ["pager", "ci"],
        secrets_for_all=("env",),
        labels={"zone": "a"},
        resources=parse_resources("gpu=1"),
        is_deaf=lambda: True,
    )
    giver.show()
    facts = {"labels": {"zone": "a"}, "resources": {"gpu": {"0": 1}}, "secrets_for_all": ["env"]}
    assert read(engine, FACTS) == [{**facts, "webhooks": ["ci", "pager"], "is_unasked": True}]
    sent = sent_by(engine)
    giver.show()
    assert [str(statement).split()[:3] for statement in sent if " hosts" in str(statement)] == [
        ["INSERT", "INTO", "hosts"]
    ]


def test_what_a_worker_does_not_say_stays(engine: Engine) -> None:
    says(engine, HERE, labels={"zone": "a"}, secrets_for_all=["env"], webhooks=["ci"], is_deaf=True)
    (before,) = read(engine, FACTS)
    up(engine, HERE)
    assert read(engine, FACTS) == [before]
    says(engine, HERE, labels={}, secrets_for_all=[], webhooks=[], is_deaf=False)
    empty = {"labels": {}, "resources": {}, "secrets_for_all": [], "webhooks": [], "is_unasked": False}
    assert read(engine, FACTS) == [empty]
