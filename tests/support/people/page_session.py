"""A browser's session with the page, without a browser."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from api.people.page.forms import form_token
from domain.installation.tokens import Role
from domain.traffic.entrances import SESSION_COOKIE
from tests.support.people.people_api import People


@contextmanager
def logged_in(people: People, role: Role, *deployments: str) -> Iterator[tuple[httpx.Client, str]]:
    """A browser with the cookie, and what its forms carry."""
    secret = people.token(role, *deployments)
    with people.stranger() as client:
        answer = client.post("/login", data={"token": secret, "then": "/deployments/web"}, follow_redirects=True)
        assert (answer.status_code, answer.url.path) == (200, "/deployments/web")
        yield client, form_token(client.cookies[SESSION_COOKIE])


def pressed(client: httpx.Client, button: str, **fields: str) -> httpx.Response:
    return client.post(f"/deployments/{fields.pop('deployment', 'web')}/{button}", data=fields)
