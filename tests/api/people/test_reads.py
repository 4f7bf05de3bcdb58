"""Reads over HTTP that no command line makes alike: what PUT sets is got again, and nobody sees what is not theirs."""

import json
from typing import Any
from uuid import uuid4

import httpx
import pytest

from domain.installation.tokens import Role
from tests.support.people.people_api import People
from tests.support.pictures.pictures import PROVISIONING, READY
from tests.support.rows.deployments import ROLLING, ask, make_deployment, read, start_all, write
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet

POLICY = {"strategy": "rolling_update", "spec": {"max_surge": 2, "max_unavailable": 0}}
RULE = {"metric": "queue_length", "source": "pushed", "comparator": ">", "threshold": 9, "step": 1, "max_replicas": 8}


@pytest.fixture
def web(people_server: People) -> str:
    return make_deployment(people_server.engine, "■■■", name=f"web-{uuid4().hex[:6]}", status=READY).name


@pytest.mark.parametrize(
    ("part", "body"),
    [
        ("policy", {"policy": POLICY}),
        ("policy", {"policy": None}),
        ("autoscaling", {"rules": [RULE]}),
        ("traffic", {"path_prefix": "/shop/", "hosts": [], "request_timeout_seconds": 30, "protocol": "http2"}),
    ],
)
def test_what_is_put_is_got_with_its_etag_and_a_stale_one_is_refused(
    people_server: People, web: str, part: str, body: dict[str, Any]
) -> None:
    path = f"/v1/deployments/{web}/{part}"
    with people_server.client(Role.ADMIN) as ann, people_server.client(Role.VIEWER) as guest:
        seen = guest.get(path).headers["etag"]
        put = ann.put(path, json=body, headers={"if-match": seen})
        got = guest.get(path)
        assert (put.status_code, got.json(), got.headers["etag"]) == (200, put.json(), put.headers["etag"])
        stale = ann.put(path, json=body, headers={"if-match": seen})
        assert (stale.status_code, stale.json()["code"]) == (412, "stale_version")
        ann.put(path, json={"traffic": {}, "autoscaling": {"rules": []}, "policy": {"policy": POLICY}}[part])


def test_two_revisions_are_held_against_each_other_and_a_value_is_shown_to_who_has_named_it(
    people_server: People,
) -> None:
    name = f"web-{uuid4().hex[:6]}"
    env = {"A": "s3cret", "B": "same", "C": {"secret": "env:C"}}
    make_deployment(people_server.engine, "■", n=1, name=name, spec={"command": ["serve"], "env": env})
    other = {"command": ["serve"], "env": {**env, "A": "another"}}
    ask(people_server.engine, "add_revision", deployment=name, name="b", spec=other)
    path = f"/v1/deployments/{name}/revisions"
    with people_server.client(Role.VIEWER, name) as guest, people_server.client(Role.OPERATOR, name) as ann:
        found = guest.get(f"{path}/v1/difference", params={"other": "b"}).json()
        assert (found["before"]["name"], found["after"]["name"], found["hidden"]) == ("v1", "b", ["A"])
        assert "s3cret" not in str(found)
        assert guest.get(f"{path}/v1/difference", params={"other": "v9"}).json()["code"] == "revision_not_found"
        document = {"deployment": name, "revision": {"name": "c", **other}}
        (held,) = ann.post("/v1/apply/difference", json={"documents": [document]}).json()["items"]
        assert held["stored"]["revision"]["env"] == {"A": "*** (before)", "B": "***", "C": {"secret": "env:C"}}
        assert "s3cret" not in str(held)
        assert [item["name"] for item in guest.get(path, params={"prefix": "v"}).json()["items"]] == ["v2", "v1"]
        assert guest.get("/v1/deployments", params={"prefix": "wiki"}).json()["items"] == []
        assert len(guest.get("/v1/deployments", params={"prefix": name[:-2]}).json()["items"]) == 1


def test_a_plan_is_made_of_each_button_and_refused_as_the_button_would_be(people_server: People) -> None:
    name = make_deployment(people_server.engine, "■■|■", name=f"web-{uuid4().hex[:6]}", status=PROVISIONING).name
    with people_server.client(Role.VIEWER, name) as guest:

        def planned(verb: str, **asked: object) -> httpx.Response:
            return guest.post(f"/v1/deployments/{name}/{verb}/plan", json=asked)

        for answer in (planned("abort"), planned("undo"), planned("scale", desired_replicas=2)):
            assert (answer.status_code, answer.json()["ends_ready"]) == (200, True), answer.text
        assert planned("pause").status_code == 200
        assert planned("resume").json()["code"] == "wrong_state"
        assert planned("scale").json()["field"] == "desired_replicas"
        assert planned("activate").json()["field"] == "revision"
        assert planned("destroy").json()["code"] == "no_such_resource"
        assert planned("abort", revision="v1").json()["field"] == "revision"


def test_what_a_file_leads_to_is_planned_document_by_document_and_nothing_is_written(people_server: People) -> None:
    name = make_deployment(people_server.engine, "■■■", name=f"web-{uuid4().hex[:6]}", policy=ROLLING).name
    documents = [
        {"deployment": name, "revision": {"name": "v9", "command": ["serve"]}},
        {"deployment": f"{name}-too", "replicas": 2, "revision": {"command": ["serve"]}},
        {"deployment": name.replace("web", "same")},
    ]
    with people_server.client(Role.OPERATOR) as ann, people_server.client(Role.OPERATOR, name) as scoped:
        changed, made, *_ = ann.post("/v1/apply/plan", json={"documents": documents[:2]}).json()["items"]
        assert (changed["deployment"], changed["ends_ready"]) == (name, True)
        assert changed["would"] == ["revision v9 added", "rollout from v1 to v9 started"]
        assert made["would"][0] == "created, 2 replicas wanted"
        assert len(changed["waves"]) > 1
        assert scoped.post("/v1/apply/plan", json={"documents": documents}).json()["code"] == "not_allowed"
        assert ann.post("/v1/apply/plan", json={"documents": []}).json()["field"] == "documents"
        assert ann.get(f"/v1/deployments/{name}-too").status_code == 404


def test_a_button_comes_with_each_field_that_it_takes(people_server: People, web: str) -> None:
    with (
        people_server.client(Role.ADMIN, web) as scoped,
        people_server.client(Role.ADMIN) as ann,
        people_server.client(Role.VIEWER) as guest,
    ):
        buttons = {button["verb"]: button for button in scoped.get(f"/v1/deployments/{web}/offered").json()["items"]}
        size, with_rollout = buttons["scale"]["fields"]
        assert (with_rollout["name"], with_rollout["is_needed"]) == ("with_rollout", False)
        assert [size[name] for name in ("name", "kind", "least", "most", "is_needed")] == [
            "desired_replicas",
            "integer",
            0,
            10_000,
            True,
        ]
        assert {"rolling-update", "policy", "traffic", "autoscaling", "destroy"} <= set(buttons)
        assert [button["verb"] for button in scoped.get("/v1/offered").json()["items"]] == ["apply"]
    with people_server.client(Role.ADMIN) as ann, people_server.client(Role.VIEWER) as guest:
        fleet = {button["verb"] for button in ann.get("/v1/offered").json()["items"]}
        assert {"apply", "set-freeze", "delete-group", "forget", "set-subscription"} <= fleet
        assert guest.get("/v1/offered").json() == {"items": []}


def test_the_table_is_that_of_the_deployments_that_the_token_is_for(people_server: People, web: str) -> None:
    make_deployment(people_server.engine, "■", n=1, name="secret", status=READY)
    with people_server.client(Role.VIEWER, web) as limited, people_server.client(Role.VIEWER) as whole:
        limited_to, all_of_it = (client.get("/v1/traffic").json() for client in (limited, whole))
    assert [service["name"] for service in limited_to["services"]] == [web]
    assert "secret" in {service["name"] for service in all_of_it["services"]}
    assert "secret" not in str(limited_to)


def test_rollouts_that_only_receipts_keep_are_listed_a_page_at_a_time_without_those_that_have_rows(
    people_server: People,
) -> None:
    made = make_deployment(people_server.engine, "■|■", n=1, name=f"kept-{uuid4().hex[:6]}", status=PROVISIONING)
    ((known,),) = (
        row.values() for row in read(people_server.engine, "SELECT id FROM rollouts WHERE deployment_id = %s", made.id)
    )
    at, ids = "2026-01-02T03:04:05+00:00", [uuid4() for _ in range(3)]
    told = {"from": "v1", "to": "v2", "outcome": "completed", "started_at": at, "ended_at": at, "actor": "ann"}
    for number, rollout in enumerate([*ids, known], 1):
        text = json.dumps({**told, "reason": f"ticket {number}"})
        write(people_server.engine, "INSERT INTO receipts VALUES (%s, %s, %s, %s, '')", rollout, made.id, number, text)
    path = f"/v1/deployments/{made.name}/receipts"
    with people_server.client(Role.VIEWER, made.name) as mine, people_server.client(Role.VIEWER, "shop") as foreign:
        first = mine.get(path, params={"limit": 2}).json()
        rest = mine.get(path, params={"limit": 2, "cursor": first["next"]}).json()
        assert [item["id"] for item in first["items"] + rest["items"]] == [str(rollout) for rollout in ids[::-1]]
        assert (rest["next"], rest["items"][0]["reason"]) == (None, "ticket 1")
        assert {name: rest["items"][0][name] for name in ("from_revision", "to_revision", "outcome", "actor")} == {
            "from_revision": "v1",
            "to_revision": "v2",
            "outcome": "completed",
            "actor": "ann",
        }
        assert mine.get(path, params={"cursor": "x"}).json()["field"] == "cursor"
        assert foreign.get(path).json()["code"] == "not_allowed"


def test_a_receipt_is_shown_to_whom_its_deployment_is_and_to_nobody_else(people_server: People) -> None:
    made = make_deployment(people_server.engine, "|■", n=1)
    coordinator = coordinator_without_redis(people_server.engine)
    ask(people_server.engine, "activate_revision", deployment=made.name, revision="v1", actor="ann", reason="sale")
    for _ in range(3):
        run_until_quiet(coordinator)
        start_all(people_server.engine)
    query = "SELECT id FROM rollouts WHERE deployment_id = %s"
    ((rollout,),) = (row.values() for row in read(people_server.engine, query, made.id))
    with people_server.client(Role.VIEWER, made.name) as mine, people_server.client(Role.VIEWER, "shop") as foreign:
        shown = mine.get(f"/v1/rollouts/{rollout}/receipt").json()
        assert (shown["receipt"]["outcome"], shown["seal"]) == ("completed", None)
        assert shown["receipt"]["acts"][0]["actor"] == "ann"
        assert mine.get(f"/v1/deployments/{made.name}/receipt").json() == shown
        refused = foreign.get(f"/v1/rollouts/{rollout}/receipt")
        assert (refused.status_code, refused.json()["code"]) == (404, "rollout_not_found")
        assert "ann" not in refused.text
