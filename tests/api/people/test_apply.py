"""Files are applied and changes rolled out over HTTP: what a token may not ask for alone, it may not ask for so."""

from typing import Any
from uuid import uuid4

import pytest

from api.people.strict_yaml import documents_of
from domain.installation.tokens import Role
from tests.support.people.people_api import People
from tests.support.pictures.pictures import READY
from tests.support.rows.deployments import ROLLING, SPEC, make_deployment, read

NEW = {"name": "v9", **SPEC, "command": ["sleep", "61"]}


@pytest.fixture
def name(people_server: People) -> str:
    return make_deployment(
        people_server.engine, "■■■", name=f"web-{uuid4().hex[:6]}", status=READY, policy=ROLLING
    ).name


def revisions(people: People, name: str) -> list[str]:
    query = "SELECT v.name FROM revisions v JOIN deployments d ON d.id = v.deployment_id WHERE d.name = %s ORDER BY 1"
    return [row["name"] for row in read(people.engine, query, name)]


def test_a_document_is_applied_and_sent_again_it_is_done_once(people_server: People, name: str) -> None:
    with people_server.client(Role.OPERATOR, name) as ann:
        key = {"idempotency-key": uuid4().hex}
        body = {"documents": [{"deployment": name, "revision": NEW}]}
        first, again = (ann.post("/v1/apply", json=body, headers=key) for _ in range(2))
        assert (first.status_code, first.json()) == (200, again.json())
        (document,) = first.json()["documents"]
        assert document["done"] == ["revision v9 added", "rollout from v1 to v9 started"]
        assert again.headers["idempotency-replayed"] == "true"


@pytest.mark.parametrize(
    ("documents", "code"),
    [
        ([{"revision": NEW, "policy": {"strategy": "recreate"}}], "not_allowed"),
        ([{"revision": NEW}, {"deployment": "of-another"}], "not_allowed"),
        ([{"revision": NEW, "replicas": -1}], "invalid_input"),
    ],
)
def test_beyond_its_token_nothing_is_applied(
    people_server: People, name: str, documents: list[dict[str, Any]], code: str
) -> None:
    before = revisions(people_server, name)
    with people_server.client(Role.OPERATOR, name) as ann:
        answer = ann.post("/v1/apply", json={"documents": [{"deployment": name, **given} for given in documents]})
    assert answer.json()["code"] == code, answer.text
    assert revisions(people_server, name) == before


@pytest.mark.parametrize("what", ["difference", "ahead"])
def test_what_is_not_its_own_a_token_does_not_see_before_it_is_applied(
    people_server: People, name: str, what: str
) -> None:
    with people_server.client(Role.OPERATOR, name) as ann, people_server.client(Role.OPERATOR, "else") as bob:
        body = {"documents": [{"deployment": name, "revision": NEW}]}
        (found,) = ann.post(f"/v1/apply/{what}", json=body).json()["items"]
        assert found["deployment"] == name
        assert bob.post(f"/v1/apply/{what}", json=body).json()["code"] == "not_allowed"


def test_what_runs_is_rolled_out_with_another_command(people_server: People, name: str) -> None:
    with people_server.client(Role.OPERATOR, name) as ann:
        path = f"/v1/deployments/{name}/rolling-update"
        answer = ann.post(path, json={"command": ["sleep", "61"]}).json()
        assert answer["activation"] == "begun"
        assert answer["revision"] in revisions(people_server, name)
        assert ann.post(path, json={"image": "web:2"}).json()["code"] == "invalid_input"


def test_what_the_page_may_press_is_offered_with_its_words(people_server: People, name: str) -> None:
    path = f"/v1/deployments/{name}/offered"
    with people_server.client(Role.VIEWER, name) as guest:
        assert guest.get(path).json()["items"] == []
        reasons = {each["verb"]: each["reason"] for each in guest.get(path).json()["missing"]}
        assert (reasons["scale"], reasons["destroy"]) == ("needs the role releaser", "needs the role admin")
    with people_server.client(Role.RELEASER, name) as releaser:
        offered = releaser.get(path).json()["items"]
        assert [offer["verb"] for offer in offered] == ["activate", "scale", "restart"]
        assert [field["name"] for field in offered[1]["fields"]] == ["desired_replicas", "with_rollout"]
        assert [offer["does"] for offer in offered] == ["Roll out {revision}", "Scale {name}", "Restart {name}"]


def test_in_a_freeze_what_is_missing_says_until_when_and_has_the_button_that_ignores_it(
    people_server: People, name: str
) -> None:
    with people_server.client(Role.ADMIN) as ada:
        window = {"starts_at": "2020-01-01T00:00:00Z", "ends_at": "2100-01-01T00:00:00Z", "reason": "a sale"}
        frozen = ada.put(f"/v1/freezes/f-{name}", json={"deployments": [name], **window})
        assert frozen.status_code == 200, frozen.text
        found = ada.get(f"/v1/deployments/{name}/offered").json()
        (activate,) = (each for each in found["missing"] if each["verb"] == "activate")
        assert (activate["reason"], activate["way"]) == ("frozen until 2100-01-01 00:00 UTC", "ignore the freeze")
        assert activate["button"]["values"]["through_freeze"] is True
        assert (found["frozen"]["freeze"], found["frozen"]["reason"]) == (f"f-{name}", "a sale")
        assert ada.request("DELETE", f"/v1/freezes/f-{name}").status_code == 200
        assert ada.get(f"/v1/deployments/{name}/offered").json()["frozen"] is None


def test_the_plan_of_an_undo_names_the_settings_of_a_file_and_a_role_undoes_what_it_may_set(
    people_server: People, name: str
) -> None:
    with (
        people_server.client(Role.ADMIN, name, name="ada") as ada,
        people_server.client(Role.RELEASER, name, name="rita") as releaser,
    ):
        for sections, status in (({"replicas": 4}, 200), ({"traffic": {"max_body_bytes": 9}}, 403)):
            applied = ada.post("/v1/apply", json={"documents": [{"deployment": name, **sections}]})
            assert applied.status_code == 200, applied.text
            planned = releaser.post(f"/v1/deployments/{name}/undo/plan").json()
            assert len(planned["would"]) == 1
            undone = releaser.post(f"/v1/deployments/{name}/undo")
            assert undone.status_code == status, undone.text
        (result,) = ada.post(f"/v1/deployments/{name}/undo").json()["settings"]
        assert result == planned["would"][0]
        assert ada.post(f"/v1/deployments/{name}/scale/plan", json={"desired_replicas": 9}).json()["would"] == []


@pytest.mark.parametrize("what", ["", "/plan", "/ahead", "/difference"])
def test_two_documents_of_one_deployment_are_refused_wherever_they_are_asked_about(
    people_server: People, what: str
) -> None:
    documents = [{"deployment": "twice"}, {"deployment": "twice"}]
    with people_server.client(Role.ADMIN) as ann:
        refused = ann.post(f"/v1/apply{what}", json={"documents": documents})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input"), refused.text
    assert "twice" in refused.json()["detail"]


def test_every_template_is_a_whole_file_without_a_doubt_and_only_for_who_may_create(people_server: People) -> None:
    with people_server.client(Role.OPERATOR) as operator:
        assert operator.get("/v1/templates").status_code == 403
    with people_server.client(Role.ADMIN) as ada:
        templates = ada.get("/v1/templates").json()["items"]
        assert len(templates) == 5
        for template in templates:
            documents = documents_of(template["text"])
            (planned,) = ada.post("/v1/apply/plan", json={"documents": documents}).json()["items"]
            assert planned["would"][0] == "created, 2 replicas wanted", template["name"]
            assert planned["notes"] == [], template["name"]
            assert planned["ends_ready"], template["name"]


def test_what_is_about_subscriptions_is_offered_where_there_is_one(people_server: People) -> None:
    about = {"delete-subscription", "resend", "events"}
    with people_server.client(Role.ADMIN) as ada:

        def offered() -> set[str]:
            return {button["verb"] for button in ada.get("/v1/offered").json()["items"]}

        for subscription in ada.get("/v1/subscriptions").json()["items"]:
            ada.delete(f"/v1/subscriptions/{subscription['name']}")
        assert not about & offered()
        assert "set-subscription" in offered()
        added = ada.put("/v1/subscriptions/shop", json={"celery_task": "shop.changed"})
        assert added.status_code == 200, added.text
        assert about <= offered()
        ada.delete("/v1/subscriptions/shop")
