"""The buttons of the page without a browser: each is a command, and what is typed is what its fields take."""

from typing import Any
from uuid import uuid4

import pytest

from api.people.doors import BUTTONS
from api.people.page.forms import FORM_TOKEN
from domain.commands.base import DeploymentCommand
from domain.installation.tokens import Role
from tests.support.people.page_session import logged_in, pressed
from tests.support.people.people_api import People
from tests.support.rows.deployments import ROLLING, make_deployment, read


@pytest.mark.parametrize("button", BUTTONS)
def test_a_viewer_presses_no_button(people_server: People, button: str) -> None:
    place = "/deployments/web" if issubclass(BUTTONS[button], DeploymentCommand) else "/fleet"
    with logged_in(people_server, Role.VIEWER) as (client, token):
        answer = client.post(f"{place}/{button}", data={"form_token": token, "reason": "why not"})
        assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")


def test_a_button_is_a_command_by_the_name_of_the_token_and_is_done_once(people_server: People) -> None:
    name = f"web-{uuid4().hex[:6]}"
    make_deployment(people_server.engine, "■■■", name=name)
    fields = {"desired_replicas": "4", "reason": "more people", "request_id": uuid4().hex}
    with logged_in(people_server, Role.OPERATOR) as (client, token):
        fields[FORM_TOKEN] = token
        first = pressed(client, "scale", deployment=name, **fields)
        again = pressed(client, "scale", deployment=name, **fields)
        nonsense = pressed(client, "scale", deployment=name, **{**fields, "desired_replicas": "many"})
        nothing = pressed(client, "reports", deployment=name, **fields)
        elsewhere = pressed(client, "set-freeze", deployment=name, **fields)
    assert first.json() == again.json()
    assert (nonsense.status_code, nonsense.json()["detail"]) == (422, "desired_replicas: must be a number")
    assert (nothing.status_code, elsewhere.status_code) == (404, 404)
    query = "SELECT h.message, h.attempts FROM deployment_history h JOIN deployments d ON d.id = h.deployment_id"
    (noted,) = read(people_server.engine, f"{query} WHERE d.name = '{name}' AND h.phase = 'scale'")
    assert noted["attempts"] == 1
    assert "more people" in noted["message"]


def test_what_is_typed_is_what_its_field_takes(people_server: People) -> None:
    name = f"web-{uuid4().hex[:6]}"
    make_deployment(people_server.engine, "■■■", name=name, policy=ROLLING, spec={"command": ["serve"]})
    document = f"deployment: {name}\npolicy: {{strategy: recreate}}"
    with logged_in(people_server, Role.ADMIN) as (client, token):

        def told(place: str, **fields: str) -> tuple[int, str]:
            answer = client.post(place, data={FORM_TOKEN: token, "reason": "to see", **fields})
            return answer.status_code, answer.json().get("detail", "")

        planned = client.post("/fleet/apply/plan", data={FORM_TOKEN: token, "documents": document})
        assert planned.status_code == 200, planned.text
        assert planned.json()["items"][0]["would"] == ["policy recreate, for rollouts from now on"]
        assert told("/fleet/apply", documents=document, activate="false") == (200, "")
        assert told("/fleet/apply", documents=f"{document}\n---\n{document}")[0] == 422
        assert "line 1" in told("/fleet/apply", documents="{a: 1, a: 2}")[1]
        assert told(f"/deployments/{name}/rolling-update", command="serve 'two words'", full="true") == (200, "")
        assert "No closing quotation" in told(f"/deployments/{name}/rolling-update", command="serve 'two")[1]
        assert told(f"/deployments/{name}/traffic", hosts="a.example b.example", preview="false") == (200, "")
        assert told(f"/deployments/{name}/autoscaling", rules="[]") == (200, "")
        assert told(f"/deployments/{name}/policy", policy="null") == (200, "")
        assert told(f"/deployments/{name}/policy", policy="{}\n---\n{}") == (422, "policy: must hold one YAML document")
        assert "quote it" in told(f"/deployments/{name}/policy", policy="{strategy: 2026-01-01}")[1]
        assert told("/fleet/set-group", group=f"g-{name}", deployments=name, most_at_once="1") == (200, "")
        assert told("/fleet/set-group", group="g", deployments=name, most_at_once="one") == (
            422,
            "most_at_once: must be a number",
        )
        assert told("/fleet/delete-group", group=f"g-{name}") == (200, "")
        assert told("/fleet/delete-group") == (
            422,
            "group: must be lower-case letters, digits, '-' and '.', 63 at most",
        )
    shown = {row["name"]: row for row in read(people_server.engine, "SELECT name, spec FROM revisions")}
    assert any(row["spec"]["command"] == ["serve", "two words"] for row in shown.values())


def test_a_text_is_refused_by_its_line_and_doubted_where_it_may_not_be_meant(people_server: People) -> None:
    wrong = "deployment: a\n---\ndeployment: other\nrevision:\n  command: serve\n  env: {A: 1}\n"
    doubtful = "deployment: pasted\nrevision: {command: python3 http_service.py}\n"
    with logged_in(people_server, Role.ADMIN) as (client, token):

        def asked(place: str, documents: str) -> dict[str, Any]:
            form = {FORM_TOKEN: token, "reason": "to see", "documents": documents}
            return dict(client.post(place, data=form).json())

        for place in ("/fleet/apply", "/fleet/apply/plan"):
            refused = asked(place, wrong)
            assert refused["detail"] == "document 2, line 6, revision.env.A: must be text; put it in quotes"
            assert refused["field"] == "documents.1.revision.env.A"
        (planned,) = asked("/fleet/apply/plan", doubtful)["items"]
        relative, without = planned["notes"]
        assert relative.startswith("http_service.py is a relative path")
        assert without.startswith("without a policy")


def test_a_token_for_some_deployments_steers_no_other(people_server: People) -> None:
    name = f"web-{uuid4().hex[:6]}"
    make_deployment(people_server.engine, "■■■", name=name)
    with logged_in(people_server, Role.OPERATOR, "shop") as (client, token):
        answer = pressed(client, "scale", deployment=name, form_token=token, desired_replicas="9")
        assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
