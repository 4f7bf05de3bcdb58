"""Every resource asked by every role: what is not allowed is refused, and nothing is let through."""

import itertools
import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from api.people.doors import DOORS
from api.people.reads.read_table import READS, HttpResource
from api.people.resources.command_resources import PLANS, WRITES, Forecast, Write
from db.access_tokens import revoke_token
from db.connection.transactions import in_transaction
from domain.commands.registry import COMMANDS
from domain.installation.tokens import Role
from tests.support.people.page_session import logged_in
from tests.support.people.people_api import People
from tests.support.rows.deployments import make_deployment, read

RESOURCES: tuple[HttpResource, ...] = (*READS, *PLANS, *WRITES)
RANK = list(Role)


@pytest.fixture(scope="module")
def clients(people_server: People) -> Iterator[dict[str, httpx.Client]]:
    make_deployment(people_server.engine, "■■■", name="web")
    made = {
        "nobody": people_server.stranger(),
        **{str(role): people_server.client(role) for role in Role},
        **{f"{role} of shop": people_server.client(role, "shop") for role in Role},
    }
    yield made
    for client in made.values():
        client.close()


def asked(client: httpx.Client, resource: HttpResource, deployment: str = "web") -> httpx.Response:
    """The example of the resource, with names that exist where that matters to nobody."""
    names = {"deployment": deployment, "revision": "v1", "rollout": str(uuid4()), "route_id": str(uuid4())}
    path = resource.path.format(**names, host="rack-7", subscription="ci", freeze="night", group="shops")
    if not isinstance(resource, Write | Forecast):
        return client.request(resource.method, path)
    body = dict(resource.command.example)
    return client.request(
        resource.method, path, json=body | ({"deployment": deployment} if "deployment" in body else {})
    )


def rows(people: People) -> list[dict[str, Any]]:
    """What a command that is let through would change."""
    return read(people.engine, "SELECT (SELECT count(*) FROM commands), (SELECT sum(version) FROM deployments)")


@pytest.mark.parametrize(
    ("role", "resource"),
    list(itertools.product(Role, RESOURCES)),
    ids=lambda value: str(value) if isinstance(value, Role) else f"{value.method} {value.path}",
)
def test_a_role_below_the_one_that_is_needed_is_refused_and_nothing_is_done(
    people_server: People, clients: dict[str, httpx.Client], role: Role, resource: HttpResource
) -> None:
    is_enough = RANK.index(role) >= RANK.index(resource.role)
    if is_enough and isinstance(resource, Write):
        return  # what is allowed is done elsewhere
    before = rows(people_server)
    answer = asked(clients[role], resource)
    assert (answer.status_code == 403) is not is_enough, answer.text
    if not is_enough:
        assert answer.json()["code"] == "not_allowed"
        assert f"needs the role {resource.role}" in answer.json()["detail"]
    assert rows(people_server) == before


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: f"{resource.method} {resource.path}")
def test_nobody_and_who_is_for_another_deployment_get_nothing(
    people_server: People, clients: dict[str, httpx.Client], resource: HttpResource
) -> None:
    before = rows(people_server)
    nobody = asked(clients["nobody"], resource)
    assert (nobody.status_code, nobody.json()["code"]) == (401, "no_token")
    assert nobody.headers["www-authenticate"].startswith("Bearer")
    answer = asked(clients["admin of shop"], resource)
    if resource.is_of_fleet or "{deployment}" in resource.path or resource.path == "/v1/deployments":
        listed = resource.method == "GET" and resource.path == "/v1/deployments"
        assert answer.json() == {"items": [], "next": None} if listed else answer.status_code == 403
    if resource.path not in ("/v1/offered", "/v1/templates"):  # their examples are of one that is called web
        assert "web" not in answer.text.replace("not for web", "")
    assert rows(people_server) == before


def test_every_command_has_one_resource() -> None:
    assert sorted(write.command.task for write in WRITES) == sorted(COMMANDS)


def test_a_token_that_is_wrong_expired_or_revoked_is_refused_with_a_sentence(people_server: People) -> None:
    def told(secret: str) -> tuple[int, str]:
        with people_server.stranger() as client:
            answer = client.get("/v1/deployments", headers={"authorization": f"Bearer {secret}"})
            return answer.status_code, answer.json().get("detail", "")

    refused = (401, "this token is unknown, revoked or expired; 'rollway token list' shows those that are valid")
    secret = people_server.token(Role.VIEWER, name="soon-revoked")
    assert told(secret)[0] == 200
    in_transaction(people_server.engine, lambda connection: revoke_token(connection, "soon-revoked", "bob"))
    expired = people_server.token(Role.VIEWER, days=1e-9)
    before = _wrong_tokens(people_server)
    assert [told(secret), told(expired), told("wrong")] == 3 * [refused]
    assert _wrong_tokens(people_server) == before + 3
    assert "a wrong token was shown" in people_server.server.log.read_text()


def _wrong_tokens(people: People) -> float:
    with people.stranger() as client:
        text = client.get("/metrics").text
    return float(text.partition("\nrollway_wrong_tokens_total ")[2].split()[0])


def test_a_key_is_of_its_token_and_deployment_alone(people_server: People) -> None:
    mine, theirs = (make_deployment(people_server.engine, "■■■", name=f"web-{uuid4().hex[:6]}").name for _ in range(2))
    key = {"idempotency-key": "build-813"}
    with people_server.client(Role.OPERATOR, mine) as scoped, people_server.client(Role.OPERATOR) as ci:
        for client, name in ((scoped, mine), (ci, theirs), (ci, mine)):
            done = client.post(f"/v1/deployments/{name}/scale", json={"desired_replicas": 4}, headers=key)
            assert (done.status_code, "idempotency-replayed" in done.headers) == (200, False)


def test_a_scoped_token_learns_no_other_name_and_takes_nothing_of_everybody(people_server: People) -> None:
    mine, theirs = (make_deployment(people_server.engine, "■■■", name=f"web-{uuid4().hex[:6]}").name for _ in range(2))
    with people_server.client(Role.ADMIN, mine) as scoped, people_server.client(Role.ADMIN) as admin:
        host = f"{uuid4().hex[:6]}.example.com"
        assert admin.put(f"/v1/deployments/{theirs}/traffic", json={"hosts": [host]}).status_code == 200
        document = {"documents": [{"deployment": mine, "traffic": {"hosts": [host]}}]}
        for refused in (
            scoped.put(f"/v1/deployments/{mine}/traffic", json={"hosts": [host]}),
            scoped.post("/v1/apply", json=document),
            scoped.post("/v1/apply/difference", json=document),
        ):
            assert (refused.status_code, refused.json()["code"]) == (409, "entrance_taken")
            assert f"{host} is another deployment's" in refused.json()["detail"]
            assert theirs not in refused.text
        named = admin.put(f"/v1/deployments/{mine}/traffic", json={"hosts": [host]})
        assert f"is {theirs}'s" in named.json()["detail"]
        for refused in (
            scoped.put(f"/v1/deployments/{mine}/traffic", json={"path_prefix": "/"}),
            scoped.post("/v1/apply", json={"documents": [{"deployment": mine, "traffic": {"path_prefix": "/"}}]}),
        ):
            assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
        assert admin.put(f"/v1/deployments/{mine}/traffic", json={"path_prefix": "/"}).status_code == 200
        assert admin.put(f"/v1/deployments/{mine}/traffic", json={}).status_code == 200


@pytest.mark.parametrize(
    "settings",
    [
        {"path_prefix": "/{theirs}/login/"},
        {"path_prefix": "/{theirs}/"},
        {"path_prefix": "/of/{theirs}/login/"},
        {"hosts": ["login.{theirs}.example.com"]},
        {"hosts": ["login.any.{theirs}.example.com"]},
        {"hosts": ["*.deep.any.{theirs}.example.com"]},
        {"hosts": ["login.{theirs}.localhost"]},
        {"hosts": ["{theirs}"]},
        {"hosts": ["{theirs}.localhost"]},
    ],
    ids=str,
)
def test_a_scoped_token_takes_no_part_of_what_another_deployment_is_reached_by(
    people_server: People, settings: dict[str, Any]
) -> None:
    """Whether it has it now, or only its name says so."""
    mine, theirs = (make_deployment(people_server.engine, "■■■", name=f"web-{uuid4().hex[:6]}").name for _ in range(2))
    taken = {"hosts": [f"{theirs}.example.com", f"*.any.{theirs}.example.com"], "path_prefix": f"/of/{theirs}/"}
    wanted = json.loads(json.dumps(settings).replace("{theirs}", theirs))
    with people_server.client(Role.ADMIN, mine) as scoped, people_server.client(Role.ADMIN) as admin:
        assert admin.put(f"/v1/deployments/{theirs}/traffic", json=taken).status_code == 200
        before = scoped.get(f"/v1/deployments/{mine}/traffic").json()
        for refused in (
            scoped.put(f"/v1/deployments/{mine}/traffic", json=wanted),
            scoped.post("/v1/apply", json={"documents": [{"deployment": mine, "traffic": wanted}]}),
        ):
            assert (refused.status_code, refused.json()["code"]) == (409, "entrance_taken")
        assert scoped.get(f"/v1/deployments/{mine}/traffic").json() == before
        own = {"path_prefix": f"/{mine}/login/", "hosts": [f"login.{mine}.localhost"]}
        assert scoped.put(f"/v1/deployments/{mine}/traffic", json=own).status_code == 200
        with people_server.client(Role.ADMIN, mine, theirs) as both:
            assert both.put(f"/v1/deployments/{mine}/traffic", json=wanted).status_code == 200


def test_a_releaser_steers_what_there_is_and_lets_nothing_run_that_is_of_its_making(people_server: People) -> None:
    name = make_deployment(people_server.engine, "■■■", name=f"web-{uuid4().hex[:6]}").name
    before = rows(people_server)
    stolen = {"command": ["sh", "-c", "cat $ROLLWAY_HOME/stack.json"]}
    with people_server.client(Role.RELEASER, name) as thief:
        for path, body in (
            (f"/v1/deployments/{name}/revisions", {"name": "mine", "spec": stolen}),
            (f"/v1/deployments/{name}/rolling-update", stolen),
            ("/v1/apply", {"documents": [{"deployment": name, "revision": stolen}]}),
            (f"/v1/deployments/{name}/logs", {}),
            (f"/v1/deployments/{name}/probe", {}),
        ):
            refused = thief.post(path, json=body)
            assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed"), path
        assert rows(people_server) == before
        assert thief.post(f"/v1/deployments/{name}/scale", json={"desired_replicas": 4}).status_code == 200
    steers = {DOORS[write.command].verb for write in WRITES if write.role is Role.RELEASER}
    assert steers == {"activate", "pause", "resume", "promote", "abort", "undo", "retry", "restart", "scale"}


def test_hosts_are_for_those_who_may_see_all_deployments(people_server: People) -> None:
    shown = {}
    for whose in ((), ("web",)):
        with logged_in(people_server, Role.VIEWER, *whose) as (client, _):
            shown[whose] = client.get("/v1/hosts").status_code, '<a href="/hosts" hidden>' in client.get("/").text
    assert shown == {(): (200, False), ("web",): (403, True)}
