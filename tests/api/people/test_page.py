"""The pages without a browser: who gets them, which forms are believed, and what every answer says to browsers."""

from uuid import uuid4

import pytest

from api.people.page.files import FILES, LIVE
from api.people.page.forms import FORM_TOKEN, form_token
from api.people.reads.table import ON_THE_PAGE, READS
from db.connection.engine import in_transaction
from db.tokens import revoke_token, session_id
from domain.installation.tokens import SESSION_COOKIE, Role
from tests.support.people.page_session import logged_in, pressed
from tests.support.people.people_api import People
from tests.support.rows.deployments import make_deployment, read


def test_who_has_not_logged_in_is_asked_for_a_token_and_comes_back_to_where_it_was(people: People) -> None:
    with people.stranger() as client:
        answer = client.get("/deployments/web")
        assert (answer.status_code, answer.headers["location"]) == (303, "/login?then=/deployments/web")
        assert 'value="/deployments/web"' in client.get(answer.headers["location"]).text


@pytest.mark.parametrize("then", ["//evil.example", "https://evil.example", "/\\evil.example"])
def test_logging_in_leads_to_no_other_site(people: People, then: str) -> None:
    with people.stranger() as client:
        answer = client.post("/login", data={"token": people.token(Role.VIEWER), "then": then})
        assert answer.headers["location"] == "/"


def test_a_wrong_token_is_told_so_on_the_page(people: People) -> None:
    with people.stranger() as client:
        answer = client.post("/login", data={"token": "no such"})
        assert answer.status_code == 401
        assert "this token is unknown, revoked or expired" in answer.text
        assert SESSION_COOKIE not in answer.cookies


def test_the_cookie_is_kept_from_scripts_and_from_other_sites(people: People) -> None:
    with people.stranger() as client:
        cookie = client.post("/login", data={"token": people.token(Role.VIEWER)}).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_a_session_is_no_token_and_no_token_is_a_session(people: People) -> None:
    secret = people.token(Role.ADMIN)
    with people.stranger() as client:
        client.post("/login", data={"token": secret})
        session = client.cookies[SESSION_COOKIE]
        assert secret not in client.cookies.values()
        assert client.get("/v1/deployments").status_code == 200
        assert client.post("/v1/deployments/web/restart").status_code == 401
        client.cookies.clear()
        assert client.get("/v1/deployments", headers={"authorization": f"Bearer {session}"}).status_code == 401
        client.cookies.set(SESSION_COOKIE, secret)
        assert client.get("/v1/deployments").status_code == 401
        assert client.get("/").headers["location"] == "/login"


def test_a_session_counts_where_the_page_asks_and_not_where_another_site_does(people: People) -> None:
    with logged_in(people, Role.VIEWER) as (client, _):
        asked = {
            site: client.get("/v1/deployments", headers={"sec-fetch-site": site}).status_code
            for site in ("same-origin", "none", "same-site", "cross-site")
        }
        assert asked == {"same-origin": 200, "none": 200, "same-site": 401, "cross-site": 401}
        assert client.get("/v1/deployments", headers={"origin": "http://127.0.0.1:8080"}).status_code == 401


def test_who_has_logged_out_or_whose_token_is_revoked_has_no_session_left(people: People) -> None:
    with logged_in(people, Role.VIEWER) as (client, token):
        session = client.cookies[SESSION_COOKIE]
        assert client.post("/logout", data={FORM_TOKEN: token}).status_code == 303
        client.cookies.set(SESSION_COOKIE, session)
        assert client.get("/v1/deployments").status_code == 401
    with people.stranger() as client:
        client.post("/login", data={"token": people.token(Role.VIEWER, name="leaves")})
        assert client.get("/v1/deployments").status_code == 200
        in_transaction(people.engine, lambda connection: revoke_token(connection, "leaves"))
        assert client.get("/v1/deployments").status_code == 401


def test_every_answer_allows_browsers_no_script_or_style_but_those_of_this_server(people: People) -> None:
    with logged_in(people, Role.VIEWER) as (client, _):
        live = [path.format(deployment="web", rollout="any") for path, _ in LIVE.values()]
        for path in (*live, "/login", *(f"/static/{name}" for name in FILES)):
            answer = client.get(path)
            policy = answer.headers["content-security-policy"]
            assert answer.status_code == 200
            assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
            assert "unsafe" not in policy
            assert " style=" not in answer.text


def test_a_name_in_a_path_is_shown_and_not_obeyed(people: People) -> None:
    with logged_in(people, Role.VIEWER) as (client, _):
        harm = "%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E"
        shown = [client.get(path) for path in (f"/deployments/{harm}", f"/deployments/{harm}/rollouts/{harm}")]
    assert [(page.status_code, "<img src=x" in page.text) for page in shown] == [(200, False)] * 2


def test_a_wrong_address_is_a_page_for_browsers_and_json_for_programs(people: People) -> None:
    with people.stranger() as client:
        shown = client.get("/nosuch/%3Cb%3E", headers={"accept": "text/html,*/*;q=0.8"})
        assert (shown.status_code, "Nothing is at <code>/nosuch/&lt;b&gt;</code>" in shown.text) == (404, True)
        assert client.get("/nosuch").json()["code"] == "no_such_resource"


def test_a_file_that_the_browser_has_is_not_sent_again(people: People) -> None:
    with people.stranger() as client:
        etag = client.get("/static/page.css").headers["etag"]
        assert client.get("/static/page.css", headers={"if-none-match": etag}).status_code == 304
        assert client.get("/static/nothing.css").status_code == 404


def test_a_link_on_another_site_finds_who_has_logged_in(people: People) -> None:
    """A strict cookie is kept back on the way from there: the page asks for itself once more."""
    with people.stranger() as client:
        answer = client.get("/", headers={"sec-fetch-site": "cross-site"})
        assert 'http-equiv="refresh"' in answer.text


def test_a_form_without_its_token_or_of_another_site_does_nothing(people: People) -> None:
    name = f"web-{uuid4().hex[:6]}"
    make_deployment(people.engine, "■■■", name=name)
    with logged_in(people, Role.OPERATOR) as (client, token):
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
    assert read(people.engine, f"SELECT desired_replicas FROM deployments WHERE name = '{name}'") == [
        {"desired_replicas": 3}
    ]


def test_a_log_is_read_by_a_form_of_the_page_and_by_operators_alone(people: People) -> None:
    made = make_deployment(people.engine, "■", name=f"web-{uuid4().hex[:6]}", n=1)
    asked = {"deployment": made.name, "route": str(made.routes[0])}
    with logged_in(people, Role.OPERATOR) as (client, token):
        without = pressed(client, "logs", **asked)
        told = pressed(client, "logs", **asked, **{FORM_TOKEN: token})
        nonsense = pressed(client, "logs", **{**asked, "route": "no-such", FORM_TOKEN: token})
    with logged_in(people, Role.VIEWER) as (client, token):
        viewer = pressed(client, "logs", **asked, **{FORM_TOKEN: token})
    with logged_in(people, Role.OPERATOR, "another") as (client, token):
        stranger = pressed(client, "logs", **asked, **{FORM_TOKEN: token})
    assert told.json() == {"items": [], "silent": ["here"]}
    assert [answer.status_code for answer in (without, nonsense, viewer, stranger)] == [403, 422, 403, 403]


def test_the_cookie_alone_writes_nothing_through_the_api(people: People) -> None:
    with logged_in(people, Role.ADMIN) as (client, _):
        answer = client.post("/v1/deployments/web/scale", json={"desired_replicas": 9})
        assert answer.status_code == 401


def test_who_logs_out_is_asked_for_a_token_again(people: People) -> None:
    with logged_in(people, Role.VIEWER) as (client, token):
        assert client.post("/logout", data={FORM_TOKEN: "guessed"}).status_code == 403
        assert client.post("/logout", data={FORM_TOKEN: token}).status_code == 303
        assert client.get("/").headers["location"] == "/login"


def test_a_session_reads_what_the_page_shows_and_nothing_else(people: People) -> None:
    with logged_in(people, Role.ADMIN) as (client, _):
        told = {read.path: client.get(read.path).status_code for read in READS if read.method == "GET"}
    refused = {path for path, status in told.items() if status == 401}
    assert refused == set(told) - ON_THE_PAGE
    assert {"/v1/subscriptions", "/v1/proxies", "/v1/traffic"} < refused
    assert told["/v1/deployments"] == 200


def test_what_was_filled_in_as_one_person_is_not_done_as_another(people: People) -> None:
    """A script of a service has replaced the session meanwhile: the form says whose it was."""
    name = make_deployment(people.engine, "■■■", name=f"web-{uuid4().hex[:6]}").name
    with logged_in(people, Role.OPERATOR) as (ann, form_of_ann), logged_in(people, Role.OPERATOR) as (thief, _):
        ann.cookies.set(SESSION_COOKIE, thief.cookies[SESSION_COOKIE])
        refused = pressed(ann, "scale", deployment=name, desired_replicas="9", **{FORM_TOKEN: form_of_ann})
    assert (refused.status_code, "of an earlier login" in refused.text) == (403, True)


def test_sessions_are_listed_and_ended_one_by_one_or_all(people: People) -> None:
    secret = people.token(Role.VIEWER, name="often")
    clients = [people.stranger() for _ in range(3)]
    for client in clients:
        client.post("/login", data={"token": secret})
    here = clients[0]
    sessions = [client.cookies[SESSION_COOKIE] for client in clients]
    shown = here.get("/sessions").text
    assert [session_id(session) in shown for session in sessions] == [True] * 3
    assert all(session not in shown for session in sessions)
    form = {FORM_TOKEN: form_token(sessions[0])}
    assert here.post("/sessions", data={"session": session_id(sessions[1])}).status_code == 403
    here.post("/sessions", data={"session": session_id(sessions[1]), **form})
    assert [client.get("/v1/deployments").status_code for client in clients] == [200, 401, 200]
    here.post("/sessions", data=form)
    assert [client.get("/v1/deployments").status_code for client in clients] == [401, 401, 401]
    for client in clients:
        client.close()
