"""The pages without a browser: who gets them, which forms are believed, and what every answer says to browsers."""

import re
from uuid import uuid4

import pytest

from api.people.page.files import FILES, LIVE
from api.people.page.forms import FORM_TOKEN, form_token
from domain.installation.tokens import Role
from domain.traffic.entrances import SESSION_COOKIE
from tests.support.people.page_session import logged_in, pressed
from tests.support.people.people_api import People
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import make_deployment, read


def test_who_has_not_logged_in_is_asked_for_a_token_and_comes_back_to_where_it_was(people_server: People) -> None:
    with people_server.stranger() as client:
        answer = client.get("/deployments/web")
        assert (answer.status_code, answer.headers["location"]) == (303, "/login?then=/deployments/web")
        assert 'value="/deployments/web"' in client.get(answer.headers["location"]).text


@pytest.mark.parametrize("then", ["//evil.example", "https://evil.example", "/\\evil.example"])
def test_logging_in_leads_to_no_other_site(people_server: People, then: str) -> None:
    with people_server.stranger() as client:
        answer = client.post(
            "/login", data={"token": people_server.token(Role.VIEWER), "then": then}, follow_redirects=True
        )
        assert (str(answer.url), answer.status_code) == (f"{people_server.server.url}/", 200)
        kept = client.get("/login/kept", params={"then": then})
        assert kept.headers["location"] == "/"


def test_a_wrong_token_is_told_so_on_the_page(people_server: People) -> None:
    with people_server.stranger() as client:
        answer = client.post("/login", data={"token": "no such"})
        assert answer.status_code == 401
        assert "this token is unknown, revoked or expired" in answer.text
        assert SESSION_COOKIE not in answer.cookies


def test_every_answer_allows_browsers_no_script_or_style_but_those_of_this_server(people_server: People) -> None:
    with logged_in(people_server, Role.VIEWER) as (client, _):
        live = [path.format(deployment="web", rollout="any") for path, _ in LIVE.values()]
        for path in (*live, "/login", *(f"/static/{name}" for name in FILES)):
            answer = client.get(path)
            policy = answer.headers["content-security-policy"]
            assert answer.status_code == (404 if path.endswith("/rollouts/any") else 200)
            assert re.match(r"default-src 'none'; script-src 'self' 'sha256-[\w+/]+='; style-src 'self'; ", policy)
            assert "unsafe" not in policy
            assert " style=" not in answer.text


def test_no_answer_is_taken_by_a_browser_for_what_it_does_not_say_that_it_is(people_server: People) -> None:
    known, paths = (
        people_server.client(Role.VIEWER),
        ("/v1/deployments", "/v1/hosts?limit=x", "/metrics", "/openapi.json"),
    )
    with known, people_server.stranger() as client:
        answers = [asks.get(path) for asks in (known, client) for path in (*paths, "/login", "/static/page.css", "/no")]
        answers.append(client.post("/login", content=b"x" * 2_000_000))
    assert {answer.status_code for answer in answers} == {200, 401, 404, 413, 422}
    assert {answer.headers.get("x-content-type-options") for answer in answers} == {"nosniff"}


def test_a_name_in_a_path_is_shown_and_not_obeyed(people_server: People) -> None:
    with logged_in(people_server, Role.VIEWER) as (client, _):
        harm = "%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E"
        shown = [client.get(path) for path in (f"/deployments/{harm}", f"/deployments/{harm}/rollouts/{harm}")]
    assert [(page.status_code, "<img src=x" in page.text) for page in shown] == [(200, False), (404, False)]


def test_a_rollout_that_is_none_of_the_deployment_is_not_found(people_server: People) -> None:
    made = make_deployment(people_server.engine, "■|◇", name=f"web-{uuid4().hex[:6]}", status=PROVISIONING)
    page, other = f"/deployments/{made.name}/rollouts", f"web-{uuid4().hex[:6]}"
    make_deployment(people_server.engine, "■■■", name=other)
    with logged_in(people_server, Role.VIEWER) as (client, _):
        paths = (
            f"{page}/{made.rollout_id}",
            f"{page}/{uuid4()}",
            f"{page}/any",
            f"/deployments/{other}/rollouts/{made.rollout_id}",
        )
        assert [client.get(path).status_code for path in paths] == [200, 404, 404, 404]
    with logged_in(people_server, Role.VIEWER, other) as (client, _):
        assert client.get(paths[0]).status_code == 404


def test_a_wrong_address_is_a_page_for_browsers_and_json_for_programs(people_server: People) -> None:
    with people_server.stranger() as client:
        shown = client.get("/nosuch/%3Cb%3E", headers={"accept": "text/html,*/*;q=0.8"})
        assert (shown.status_code, "Nothing is at <code>/nosuch/&lt;b&gt;</code>" in shown.text) == (404, True)
        assert client.get("/nosuch").json()["code"] == "no_such_resource"


def test_a_file_that_the_browser_has_is_not_sent_again(people_server: People) -> None:
    with people_server.stranger() as client:
        etag = client.get("/static/page.css").headers["etag"]
        assert client.get("/static/page.css", headers={"if-none-match": etag}).status_code == 304
        assert client.get("/static/nothing.css").status_code == 404


def test_a_link_on_another_site_finds_who_has_logged_in(people_server: People) -> None:
    """A strict cookie is kept back on the way from there: the page asks for itself once more."""
    with people_server.stranger() as client:
        answer = client.get("/", headers={"sec-fetch-site": "cross-site"})
        assert 'http-equiv="refresh"' in answer.text


def test_a_form_without_its_token_or_of_another_site_does_nothing(people_server: People) -> None:
    name = f"web-{uuid4().hex[:6]}"
    make_deployment(people_server.engine, "■■■", name=name)
    with logged_in(people_server, Role.OPERATOR) as (client, token):
        without = pressed(client, "scale", deployment=name, desired_replicas="9")
        wrong = pressed(client, "scale", deployment=name, desired_replicas="9", **{FORM_TOKEN: form_token("guessed")})
        foreign = client.post(
            f"/deployments/{name}/scale",
            data={"desired_replicas": "9", FORM_TOKEN: token},
            headers={"sec-fetch-site": "cross-site"},
        )
        old = client.post(
            f"/deployments/{name}/scale",
            data={"desired_replicas": "9", FORM_TOKEN: token},
            headers={"origin": "https://evil.example"},
        )
    assert [answer.status_code for answer in (without, wrong, foreign, old)] == [403] * 4
    assert read(people_server.engine, f"SELECT desired_replicas FROM deployments WHERE name = '{name}'") == [
        {"desired_replicas": 3}
    ]


def test_a_log_is_read_by_a_form_of_the_page_and_by_operators_alone(people_server: People) -> None:
    made = make_deployment(people_server.engine, "■", name=f"web-{uuid4().hex[:6]}", n=1)
    asked = {"deployment": made.name, "route": str(made.routes[0])}
    with logged_in(people_server, Role.OPERATOR) as (client, token):
        without = pressed(client, "logs", **asked)
        told = pressed(client, "logs", **asked, **{FORM_TOKEN: token})
        nonsense = pressed(client, "logs", **{**asked, "route": "no-such", FORM_TOKEN: token})
    with logged_in(people_server, Role.VIEWER) as (client, token):
        viewer = pressed(client, "logs", **asked, **{FORM_TOKEN: token})
    with logged_in(people_server, Role.OPERATOR, "another") as (client, token):
        stranger = pressed(client, "logs", **asked, **{FORM_TOKEN: token})
    assert told.json() == {"items": [], "silent": ["here"]}
    assert [answer.status_code for answer in (without, nonsense, viewer, stranger)] == [403, 422, 403, 403]


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/deployments/web/undo", 405, "/deployments/web/undo is the address of a button"),
        ("/deployments/web/undo/plan", 405, "is the address of a button"),
        ("/fleet/apply", 405, "/fleet/apply is the address of a button"),
        ("/logout", 405, "/logout is the address of a button"),
        ("/deployments/web/foo", 404, "Nothing is at <code>/deployments/web/foo</code>"),
        ("/fleet/foo", 404, "Nothing is at <code>/fleet/foo</code>"),
        ("/tokens", 403, "This needs the role admin"),
    ],
)
def test_who_opens_the_address_of_a_button_gets_a_page_that_leads_back(
    people_server: People, path: str, status: int, says: str
) -> None:
    with logged_in(people_server, Role.VIEWER) as (client, _):
        shown = client.get(path, headers={"accept": "text/html,*/*;q=0.8"})
        assert (shown.status_code, says in shown.text, 'href="/"' in shown.text) == (status, True, True), shown.text
        assert ('href="/deployments/web"' in shown.text) is (status == 405 and "/web/" in path)
        plain = client.get(path)
        assert plain.headers["content-type"] == "application/problem+json"
        if status == 405:
            assert shown.headers["allow"] == plain.headers["allow"] == "POST"


def test_the_folder_of_deployments_is_the_list(people_server: People) -> None:
    with logged_in(people_server, Role.VIEWER) as (client, _):
        assert client.get("/deployments").headers["location"] == "/"


def test_an_unknown_deployment_is_told_with_those_that_are_called_alike(people_server: People) -> None:
    name = make_deployment(people_server.engine, "■", name=f"checkout-{uuid4().hex[:6]}", n=1).name
    with people_server.client(Role.VIEWER) as client:
        refused = client.get(f"/v1/deployments/{name.replace('check', 'chek')}").json()
        assert name in refused["values"]["near"].split(", ")
        assert "near" not in client.get("/v1/deployments/nothing-like-it-at-all-xyz").json()["values"]
