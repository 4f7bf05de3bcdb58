"""Links that log in once: within a minute, with the rights of a token, and by no other site."""

import httpx
import pytest

from db.access_tokens import make_login_link
from db.connection.transactions import in_transaction
from domain.installation.tokens import Role
from domain.traffic.entrances import SESSION_COOKIE
from tests.support.people.people_api import People
from tests.support.rows.deployments import read, write
from tests.support.stack.waiting import eventually


@pytest.fixture
def link(people_server: People) -> str:
    """The secret of a link of an operator."""
    with people_server.client(Role.OPERATOR) as client:
        made = client.post("/v1/login-links")
    assert made.status_code == 201
    path, _, secret = str(made.json()["path"]).partition("#link=")
    assert path == "/login"
    return secret


def follow(client: httpx.Client, secret: str, **headers: str) -> httpx.Response:
    return client.post("/login", data={"link": secret, "then": "/hosts"}, headers=headers)


def test_a_link_logs_in_once_with_the_rights_of_its_token(people_server: People, link: str) -> None:
    with people_server.stranger() as client, people_server.stranger() as thief:
        answer = follow(client, link)
        assert (answer.status_code, answer.headers["location"]) == (303, "/login/kept?then=/hosts")
        shown = client.get("/hosts").text
        assert '<span class="role">operator</span>' in shown
        assert client.post("/v1/deployments/web/restart").status_code == 401, "a session is no token"
        assert client.get("/tokens").status_code == 403
        again = follow(thief, link)
        assert (again.status_code, SESSION_COOKIE in thief.cookies) == (401, False)
        assert "this link has been used already" in again.text
        assert "Copy the link" in again.text


def test_of_two_that_follow_a_link_at_once_one_is_logged_in(people_server: People, link: str) -> None:
    clients = [people_server.stranger() for _ in range(2)]
    with clients[0] as first, clients[1] as second:
        assert sorted(follow(client, link).status_code for client in (first, second)) == [303, 401]


def test_a_link_is_good_for_a_minute(people_server: People, link: str) -> None:
    (row,) = read(
        people_server.engine, "SELECT ends_at - clock_timestamp() AS left FROM login_links WHERE used_at IS NULL"
    )
    assert 50 < row["left"].total_seconds() <= 60
    write(people_server.engine, "UPDATE login_links SET ends_at = clock_timestamp() WHERE used_at IS NULL")
    with people_server.stranger() as client:
        late = follow(client, link)
        assert (late.status_code, "good for a minute, which is over" in late.text) == (401, True)
        assert follow(client, "guessed").status_code == 401


def test_a_link_of_a_token_that_is_revoked_or_has_expired_logs_nobody_in(people_server: People) -> None:
    people_server.token(Role.ADMIN, name="brief", days=1e-7)
    in_transaction(people_server.engine, lambda connection: make_login_link(connection, "brief", "of brief"))
    over = "SELECT FROM tokens WHERE name = 'brief' AND expires_at <= clock_timestamp()"
    eventually(lambda: len(read(people_server.engine, over)) == 1)
    with people_server.stranger() as client:
        expired = follow(client, "of brief")
        assert (expired.status_code, "of a token that has expired" in expired.text) == (401, True)
        write(people_server.engine, "DELETE FROM tokens WHERE name = 'brief'")
        assert follow(client, "of brief").status_code == 401


def test_another_site_makes_no_browser_follow_a_link(people_server: People, link: str) -> None:
    with people_server.stranger() as client:
        for site in ("cross-site", "same-site"):
            assert follow(client, link, **{"sec-fetch-site": site}).status_code == 403
            led = client.get("/login", headers={"sec-fetch-site": site})
            assert 'data-obeyed=""' in led.text
        assert 'data-obeyed="yes"' in client.get("/login", headers={"sec-fetch-site": "none"}).text
        assert SESSION_COOKIE not in client.cookies
        assert follow(client, link).status_code == 303, "it was not used up"


def test_a_session_makes_no_link(people_server: People, link: str) -> None:
    with people_server.stranger() as client:
        follow(client, link)
        assert client.post("/v1/login-links").status_code == 401
        assert client.get("/v1/login-links").status_code == 405
