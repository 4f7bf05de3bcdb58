"""The history of the whole fleet over HTTP: what people did, with deployment and without, filtered and in pages."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from db.access_tokens import revoke_token
from db.connection.transactions import in_transaction
from domain.installation.tokens import Role
from tests.support.people.people_api import People
from tests.support.rows.deployments import make_deployment, write
from tests.support.rows.hosts import up

EVER = "1970-01-01T00:00:00Z"


def records(client: httpx.Client, **asked: object) -> list[dict[str, Any]]:
    answer = client.get("/v1/history", params={name: str(value) for name, value in asked.items()})
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def messages(client: httpx.Client, **asked: object) -> list[str]:
    return [record["message"] for record in records(client, **asked)]


@pytest.fixture
def ann(people_server: People) -> Iterator[httpx.Client]:
    """Whoever did all of a test, and nothing else."""
    with people_server.client(Role.ADMIN, name=f"ann-{uuid4().hex[:6]}") as client:
        yield client


def name_of(client: httpx.Client, people: People) -> str:
    client.put("/v1/groups/whoever", json={"deployments": ["a"]})
    actor: str = records(client)[0]["actor"]
    assert actor.startswith("ann-"), people
    return actor


def test_what_is_done_to_the_fleet_is_recorded_with_its_reason(people_server: People, ann: httpx.Client) -> None:
    up(people_server.engine, "rack-1", "rack-2")
    who = name_of(ann, people_server)
    window = {"starts_at": "2100-12-24T18:00Z", "ends_at": "2101-01-02T09:00Z", "deployments": ["shop-*"]}
    assert ann.put("/v1/freezes/fair", json={**window, "reason": "the fair"}).status_code == 200
    assert ann.delete("/v1/freezes/fair").status_code == 200
    ann.post("/v1/hosts/rack-1/drain", json={"reason": "a new disk"})
    ann.post("/v1/hosts/rack-1/undrain")
    write(people_server.engine, "UPDATE hosts SET down_since = clock_timestamp() WHERE name = 'rack-2'")
    ann.post("/v1/hosts/rack-2/forget")
    assert messages(ann, who=who, people=True) == [
        "rack-2 is forgotten",
        "rack-1 takes replicas again",
        "rack-1 is drained, with replicas of 0 deployments: a new disk",
        "fair freezes nothing any more",
        "fair: from 2100-12-24 18:00 UTC, for shop-*: the fair",
        "whoever: a roll out any number at once",
    ]
    newest = records(ann, who=who)[0]
    assert newest.items() >= {"deployment": "", "phase": "forget_host", "target": "rack-2", "result": "asked"}.items()
    assert messages(ann, who=who, kind="hosts")[-1].startswith("rack-1 is drained")
    assert ann.put("/v1/freezes/fair", json={"starts_at": "nonsense"}).status_code == 422
    assert len(records(ann, who=who)) == 6, "what was refused is no deed"


def test_what_is_sent_twice_is_recorded_once(people_server: People, ann: httpx.Client) -> None:
    who = name_of(ann, people_server)
    for _ in range(2):
        ann.put("/v1/freezes/once", json={"duration_seconds": 60}, headers={"idempotency-key": "one"})
    assert len(records(ann, who=who, kind="freezes")) == 2  # with that of the group


def test_tokens_and_sign_ins_are_recorded_for_admins_alone(people_server: People, ann: httpx.Client) -> None:
    name, secret = f"eve-{uuid4().hex[:6]}", ""
    secret = people_server.token(Role.VIEWER, name=name)
    with people_server.stranger() as browser:
        browser.post("/login", data={"token": secret}, headers={"user-agent": "Mozilla/5.0 (X11; Linux) Firefox/133.0"})
    in_transaction(people_server.engine, lambda connection: revoke_token(connection, name, "bob"))
    with people_server.client(Role.OPERATOR) as operator:
        assert records(operator, who=name) == []
    assert messages(ann, who=name, kind="sign-ins") == ["logged in to the page from 127.0.0.1, Firefox on Linux"]
    of_tokens = [each for each in records(ann, kind="tokens") if each["target"] == name]
    assert [(each["actor"], each["message"]) for each in of_tokens] == [
        ("bob", f"token {name} is revoked"),
        ("test", f"token {name}: viewer for all deployments"),
    ]


def test_who_may_see_some_deployments_sees_their_records_alone(people_server: People, ann: httpx.Client) -> None:
    mine, other = (f"web-{uuid4().hex[:6]}" for _ in range(2))
    for name in (mine, other):
        make_deployment(people_server.engine, name=name)
        ann.post(f"/v1/deployments/{name}/scale", json={"desired_replicas": 4})
    name_of(ann, people_server)
    with people_server.client(Role.ADMIN, mine) as scoped:
        assert {record["deployment"] for record in records(scoped)} == {mine}
        assert scoped.get("/v1/history", params={"deployment": other}).status_code == 403
    assert [record["deployment"] for record in records(ann, deployment=other)] == [other]


def test_pages_follow_each_other_without_a_gap_and_days_bound_them(people_server: People, ann: httpx.Client) -> None:
    name = f"web-{uuid4().hex[:6]}"
    made = make_deployment(people_server.engine, name=name)
    for size in (4, 5, 6, 7, 8):
        ann.post(f"/v1/deployments/{name}/scale", json={"desired_replicas": size})
    write(
        people_server.engine,
        "UPDATE deployment_history SET updated_at = updated_at - interval '2 days' WHERE deployment_id = %s",
        made.id,
    )
    assert records(ann, deployment=name) == [], "within the last hour"
    asked, seen = {"deployment": name, "since": EVER, "people": "true", "limit": "2"}, []
    while True:
        page = ann.get("/v1/history", params=asked).json()
        seen += [record["message"] for record in page["items"]]
        if page["next"] is None:
            break
        asked["cursor"] = page["next"]
    assert [message.split()[-2] for message in seen] == ["8", "7", "6", "5", "4"]
    first = records(ann, deployment=name, since=EVER)[0]["updated_at"]
    assert len(records(ann, deployment=name, since=EVER, until=first)) == 4
    assert len(records(ann, deployment=name, since=first)) == 1
    assert ann.get("/v1/history", params={"cursor": "nonsense"}).status_code == 422


def test_the_engines_steps_are_left_out_of_what_people_did(people_server: People, ann: httpx.Client) -> None:
    name = f"web-{uuid4().hex[:6]}"
    made = make_deployment(people_server.engine, name=name)
    write(
        people_server.engine,
        """
        INSERT INTO deployment_history (deployment_id, phase, result, target, actor, message)
        VALUES (%s, 'scaling', 'success', 'ready', 'scaling', 'in place')
        """,
        made.id,
    )
    ann.post(f"/v1/deployments/{name}/scale", json={"desired_replicas": 4})
    assert [record["phase"] for record in records(ann, deployment=name)] == ["scale", "scaling"]
    assert [record["phase"] for record in records(ann, deployment=name, people=True)] == ["scale"]
    of_it = [ann.get(f"/v1/deployments/{name}/history", params={"people": people}) for people in ("false", "true")]
    assert [len(answer.json()["items"]) for answer in of_it] == [2, 1]
