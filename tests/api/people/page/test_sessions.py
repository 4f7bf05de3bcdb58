"""Sessions of the page: whose cookie counts, for what, and until when."""

from uuid import uuid4

from api.people.page.forms import FORM_TOKEN, form_token
from api.people.reads.read_table import ON_THE_PAGE, READS
from db.access_tokens import revoke_token, session_id
from db.connection.transactions import in_transaction
from domain.installation.tokens import Role
from domain.traffic.entrances import SESSION_COOKIE
from tests.support.people.page_session import logged_in, pressed
from tests.support.people.people_api import People
from tests.support.rows.deployments import make_deployment


def test_the_cookie_is_kept_from_scripts_and_from_other_sites_and_host_names(people_server: People) -> None:
    with people_server.stranger() as client:
        cookie = client.post("/login", data={"token": people_server.token(Role.VIEWER)}).headers["set-cookie"]
    name, *rest = cookie.partition("=")[0], *(part.strip().lower() for part in cookie.split(";")[1:])
    assert name.startswith("__Host-")
    assert {"httponly", "samesite=strict", "secure", "path=/"} <= set(rest)
    assert not any(part.startswith("domain") for part in rest)


def test_a_browser_that_keeps_no_session_is_told_where_it_would(people_server: People) -> None:
    with people_server.stranger() as client:
        client.post("/login", data={"token": people_server.token(Role.VIEWER)})
        client.cookies.clear()
        answer = client.get("/login/kept?then=/hosts")
    assert answer.status_code == 401
    assert f"http://rollway.localhost:{people_server.server.port}" in answer.text
    assert 'value="/hosts"' in answer.text


def test_two_sessions_are_refused_whatever_line_they_stand_in(people_server: People) -> None:
    with logged_in(people_server, Role.VIEWER) as (client, _):
        good = f"{SESSION_COOKIE}={client.cookies[SESSION_COOKIE]}"
        other = f"{SESSION_COOKIE}=of-somebody-else"
        shown = {
            "alone": [("cookie", f"a=1; {good}; b=2")],
            "one line": [("cookie", f"{other}; {good}")],
            "two lines": [("cookie", good), ("cookie", other)],
            "an old one": [("cookie", f"rollway_session=old; {good}")],
        }
        got = {
            (word, path): client.get(path, headers=lines)
            for word, lines in shown.items()
            for path in ("/", "/v1/hosts")
        }
    assert {key: answer.status_code for key, answer in got.items()} == {
        (word, path): 400 if word in ("one line", "two lines") else 200 for word, path in got
    }
    assert "came twice" in got["one line", "/"].json()["detail"]


def test_a_session_is_no_token_and_no_token_is_a_session(people_server: People) -> None:
    secret = people_server.token(Role.ADMIN)
    with people_server.stranger() as client:
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


def test_a_session_counts_where_the_page_asks_and_not_where_another_site_does(people_server: People) -> None:
    with logged_in(people_server, Role.VIEWER) as (client, _):
        asked = {
            site: client.get("/v1/deployments", headers={"sec-fetch-site": site}).status_code
            for site in ("same-origin", "none", "same-site", "cross-site")
        }
        assert asked == {"same-origin": 200, "none": 200, "same-site": 401, "cross-site": 401}
        assert client.get("/v1/deployments", headers={"origin": "http://127.0.0.1:8080"}).status_code == 401


def test_who_has_logged_out_or_whose_token_is_revoked_has_no_session_left(people_server: People) -> None:
    with logged_in(people_server, Role.VIEWER) as (client, token):
        session = client.cookies[SESSION_COOKIE]
        assert client.post("/logout", data={FORM_TOKEN: token}).status_code == 303
        client.cookies.set(SESSION_COOKIE, session)
        assert client.get("/v1/deployments").status_code == 401
    with people_server.stranger() as client:
        client.post("/login", data={"token": people_server.token(Role.VIEWER, name="leaves")})
        assert client.get("/v1/deployments").status_code == 200
        in_transaction(people_server.engine, lambda connection: revoke_token(connection, "leaves", "bob"))
        assert client.get("/v1/deployments").status_code == 401


def test_the_cookie_alone_writes_nothing_through_the_api(people_server: People) -> None:
    with logged_in(people_server, Role.ADMIN) as (client, _):
        answer = client.post("/v1/deployments/web/scale", json={"desired_replicas": 9})
        assert answer.status_code == 401


def test_who_logs_out_is_asked_for_a_token_again(people_server: People) -> None:
    with logged_in(people_server, Role.VIEWER) as (client, token):
        assert client.post("/logout", data={FORM_TOKEN: "guessed"}).status_code == 403
        assert client.post("/logout", data={FORM_TOKEN: token}).status_code == 303
        assert client.get("/").headers["location"] == "/login"


def test_a_session_reads_what_the_page_shows_and_nothing_else(people_server: People) -> None:
    with logged_in(people_server, Role.ADMIN) as (client, _):
        told = {read.path: client.get(read.path).status_code for read in READS if read.method == "GET"}
    refused = {path for path, status in told.items() if status == 401}
    assert refused == set(told) - ON_THE_PAGE
    assert {"/v1/subscriptions", "/v1/proxies", "/v1/traffic"} < refused
    assert told["/v1/deployments"] == 200


def test_what_was_filled_in_as_one_person_is_not_done_as_another(people_server: People) -> None:
    """A script of a service has replaced the session meanwhile: the form says whose it was."""
    name = make_deployment(people_server.engine, "■■■", name=f"web-{uuid4().hex[:6]}").name
    with (
        logged_in(people_server, Role.OPERATOR) as (ann, form_of_ann),
        logged_in(people_server, Role.OPERATOR) as (thief, _),
    ):
        ann.cookies.set(SESSION_COOKIE, thief.cookies[SESSION_COOKIE])
        refused = pressed(ann, "scale", deployment=name, desired_replicas="9", **{FORM_TOKEN: form_of_ann})
    assert (refused.status_code, "of an earlier login" in refused.text) == (403, True)


def test_sessions_are_listed_and_ended_one_by_one_or_all(people_server: People) -> None:
    secret = people_server.token(Role.VIEWER, name="often")
    clients = [people_server.stranger() for _ in range(3)]
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
    assert here.get("/v1/deployments").status_code == 200, "no button was pressed"
    here.post("/sessions", data={"everywhere": "true", **form})
    assert [client.get("/v1/deployments").status_code for client in clients] == [401, 401, 401]
    for client in clients:
        client.close()
