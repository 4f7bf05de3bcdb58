"""The page of tokens without a browser: whose it is, what is shown once, and what it takes to revoke one."""

import html
import re
from uuid import uuid4

import httpx
import pytest

from api.people.page.forms import FORM_TOKEN
from domain.installation.tokens import Role
from domain.traffic.entrances import SESSION_COOKIE
from tests.support.people.page_session import logged_in
from tests.support.people.people_api import People

SECRET = re.compile(r"rollway_[\w-]{43}")


def made(client: httpx.Client, form_token: str, **fields: str) -> httpx.Response:
    return client.post("/tokens", data={FORM_TOKEN: form_token, "role": "viewer", **fields})


def test_an_admin_makes_a_token_that_is_shown_once_and_counts_until_it_is_revoked(people_server: People) -> None:
    name = f"ci-{uuid4().hex[:6]}"
    with logged_in(people_server, Role.ADMIN) as (client, form_token):
        answer = made(client, form_token, name=name, role="releaser", deployments="web, shop", days="7")
        (secret,) = SECRET.findall(answer.text)
        shown = client.get("/tokens").text
        assert (name in shown, secret in shown) == (True, False)
        assert "for shop, web" in shown or "for web, shop" in shown
        with people_server.stranger() as bearer:
            bearer.headers["authorization"] = f"Bearer {secret}"
            assert bearer.get("/v1/deployments").status_code == 200
            untyped = client.post("/tokens/revoke", data={FORM_TOKEN: form_token, "name": name, "confirm": "ci"})
            assert (untyped.status_code, f"type {name} to revoke it" in untyped.text) == (422, True)
            assert bearer.get("/v1/deployments").status_code == 200
            ended = client.post("/tokens/revoke", data={FORM_TOKEN: form_token, "name": name, "confirm": name})
            assert (ended.status_code, bearer.get("/v1/deployments").status_code) == (303, 401)
        told = client.get("/v1/history", params={"kind": "tokens", "limit": 2}).json()["items"]
    assert [record["message"].partition(",")[0] for record in told] == [
        f"token {name} is revoked",
        f"token {name}: releaser for web",
    ]


@pytest.mark.parametrize(("role", "deployments"), [(Role.OPERATOR, ()), (Role.ADMIN, ("web",))])
def test_only_an_admin_for_all_deployments_sees_or_makes_tokens(
    people_server: People, role: Role, deployments: tuple[str, ...]
) -> None:
    name = f"more-{uuid4().hex[:6]}"
    with logged_in(people_server, role, *deployments) as (client, form_token):
        assert client.get("/tokens").status_code == 403
        assert made(client, form_token, name=name, role="admin").status_code == 403
        revoked = client.post("/tokens/revoke", data={FORM_TOKEN: form_token, "name": name, "confirm": name})
        assert revoked.status_code == 403
        assert 'href="/tokens" class="spare" hidden' in client.get("/").text
    with logged_in(people_server, Role.ADMIN) as (admin, _):
        assert name not in admin.get("/tokens").text


def test_a_form_without_its_token_or_of_another_site_makes_none(people_server: People) -> None:
    name = f"theirs-{uuid4().hex[:6]}"
    with logged_in(people_server, Role.ADMIN) as (client, form_token):
        assert made(client, "guessed", name=name).status_code == 403
        fields = {FORM_TOKEN: form_token, "name": name, "role": "admin"}
        foreign = client.post("/tokens", data=fields, headers={"sec-fetch-site": "cross-site"})
        assert foreign.status_code == 403
        assert name not in client.get("/tokens").text
    with people_server.client(Role.ADMIN) as bearer:
        assert bearer.post("/tokens", data={"name": name, "role": "admin"}).status_code == 401


def test_what_is_wrong_with_a_token_is_told_and_what_was_typed_stays(people_server: People) -> None:
    name = f"twice-{uuid4().hex[:6]}"
    with logged_in(people_server, Role.ADMIN) as (client, form_token):
        made(client, form_token, name=name)
        for fields, says in (
            ({"name": name}, f"a token called {name} exists"),
            ({"name": "Bad Name"}, "name: must be lower-case letters"),
            ({"name": "ok", "role": "king"}, "role: "),
            ({"name": "ok", "days": "0"}, "days: must be more than 0"),
        ):
            answer = made(client, form_token, **fields)
            text = html.unescape(answer.text)
            assert (answer.status_code, says in text, SECRET.search(text)) == (422, True, None), text
            assert f'value="{fields["name"]}"' in text


def test_the_form_to_log_in_says_why_a_session_is_over(people_server: People) -> None:
    def told(client: httpx.Client) -> str:
        return client.get("/deployments/web?only=x", follow_redirects=True).text

    with (
        logged_in(people_server, Role.VIEWER) as (client, _),
        logged_in(people_server, Role.ADMIN) as (admin, form_token),
    ):
        shown = client.get("/").text
        name = re.findall(r'data-token="([^"]+)"', shown)[0]
        admin.post("/tokens/revoke", data={FORM_TOKEN: form_token, "name": name, "confirm": name})
        assert "Your token was revoked or has expired." in told(client)
        session = admin.cookies[SESSION_COOKIE]
        admin.post("/sessions", data={FORM_TOKEN: form_token, "everywhere": "true"})
        admin.cookies.set(SESSION_COOKIE, session)
        assert "Your session was ended." in told(admin)
        assert 'value="/deployments/web?only=x"' in told(admin)
    with people_server.stranger() as client:
        assert "Your" not in client.get("/login?why=nonsense").text.partition('role="alert">')[2].partition("<")[0]
