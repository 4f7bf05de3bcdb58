"""Commands over HTTP: each once, none on a deployment that has changed since, and each refusal says why."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any
from uuid import uuid4

import httpx
import pytest

from api.people.problems import STATUS, status_of
from domain.installation.tokens import Role
from domain.text.errors import RollwayError
from tests.support.people.people_api import People
from tests.support.pictures.pictures import READY
from tests.support.rows.deployments import make_deployment, read
from tests.support.rows.refused_writes import TRANSACTION_TIMEOUT, refused_writes

SPEC = {"command": ["sleep", "60"], "env": {"KEY": "s3cret"}}


@pytest.fixture
def web(people_server: People) -> str:
    return make_deployment(people_server.engine, "■■■", name=f"web-{uuid4().hex[:6]}", status=READY).name


def test_a_deployment_is_made_and_driven_and_its_values_stay_hidden(people_server: People) -> None:
    with people_server.client(Role.ADMIN, name="ann") as ann:
        made = ann.post("/v1/deployments", json={"deployment": "new", "desired_replicas": 2, "reason": "first day"})
        assert (made.status_code, made.headers["etag"]) == (201, '"1"')
        added = ann.post("/v1/deployments/new/revisions", json={"name": "v1", "spec": SPEC})
        assert added.json()["added"]
        assert ann.post("/v1/deployments/new/activate", json={"revision": "v1"}).json()["activation"] == "first"
        shown = ann.get("/v1/deployments/new")
        assert shown.headers["etag"] == f'"{shown.json()["version"]}"'
        assert shown.json()["current_revision"] == "v1"
        assert ann.get("/v1/deployments/new/revisions/v1").json()["spec"]["env"] == {"KEY": "***"}
        assert "s3cret" not in shown.text + ann.get("/v1/deployments/new/revisions").text
        assert [record["actor"] for record in ann.get("/v1/deployments/new/history").json()["items"]] == 3 * ["ann"]


def test_asked_again_with_its_key_a_command_is_done_once_and_answered_alike(people_server: People, web: str) -> None:
    with people_server.client(Role.OPERATOR) as client, people_server.client(Role.OPERATOR) as other:
        key, path = {"idempotency-key": str(uuid4())}, f"/v1/deployments/{web}/scale"
        first, again = (client.post(path, json={"desired_replicas": 5}, headers=key) for _ in range(2))
        assert first.json() == again.json()
        assert ["idempotency-replayed" in answer.headers for answer in (first, again)] == [False, True]
        refused = client.post(path, json={"desired_replicas": 6}, headers=key)
        assert (refused.status_code, refused.json()["code"]) == (422, "request_id_reused")
        done = other.post(path, json={"desired_replicas": 6}, headers=key)
        assert (done.status_code, done.json()["to"]) == (200, 6), "a key is its token's own"
        wrong = client.post(path, json={"desired_replicas": 5}, headers={"idempotency-key": "a" * 201})
        assert (wrong.status_code, wrong.json()["field"]) == (422, "Idempotency-Key")


def test_a_command_that_took_postgres_too_long_may_be_asked_again(people_server: People, web: str) -> None:
    with people_server.client(Role.OPERATOR) as client:
        ask = partial(client.post, f"/v1/deployments/{web}/scale", json={"desired_replicas": 5})
        with refused_writes(people_server.engine, "commands", TRANSACTION_TIMEOUT):
            refused = ask()
        assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
        assert ask().status_code == 200


def test_a_stale_etag_is_refused_with_the_version_that_there_is(people_server: People, web: str) -> None:
    path = f"/v1/deployments/{web}"
    with people_server.client(Role.OPERATOR) as client:
        seen = client.get(path).headers["etag"]
        changed = client.post(f"{path}/scale", json={"desired_replicas": 4}, headers={"if-match": seen})
        assert changed.status_code == 200
        stale = client.post(f"{path}/scale", json={"desired_replicas": 7}, headers={"if-match": seen})
        assert (stale.status_code, stale.json()["code"]) == (412, "stale_version")
        assert f"is at version {changed.json()['version']}, not {seen.strip(chr(34))}" in stale.json()["detail"]
        assert f"the last to steer it was {stale.json()['values']['last_actor']} (scale)" in stale.json()["detail"]
        assert client.post(f"{path}/scale", json={"desired_replicas": 7}, headers={"if-match": "*"}).status_code == 200
        assert client.post(f"{path}/restart", headers={"if-match": "7"}).json()["field"] == "If-Match"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "field", "words"),
    [
        ("POST", "/scale", {"desired_replicas": "many"}, 422, "desired_replicas", "must be a whole number"),
        ("POST", "/scale", {}, 422, "desired_replicas", "is missing"),
        ("POST", "/scale", {"desired_replicas": 1, "actor": "me"}, 422, "actor", "the name of the token says it"),
        ("POST", "/scale", [], 422, "", "must be fields"),
        ("POST", "/activate", {"revison": "v1"}, 422, "revision", "is missing"),
        ("POST", "/activate", {"revision": "v9"}, 404, None, "v9"),
        ("POST", "/resume", {}, 409, None, "no rollout"),
        ("GET", "/history?limit=0", None, 422, "limit", "at least 1"),
        ("GET", "/history?cursor=x", None, 422, "cursor", "the `next` of the page before"),
        ("GET", "/nothing", None, 404, None, "/openapi.json lists"),
        ("PATCH", "", {}, 405, None, "GET, HEAD are"),
    ],
)
def test_a_refusal_says_what_is_wrong_and_where(
    people_server: People, web: str, method: str, path: str, body: object, status: int, field: str | None, words: str
) -> None:
    with people_server.client(Role.ADMIN) as client:
        refused = client.request(method, f"/v1/deployments/{web}{path}", json=body)
    document = refused.json()
    assert (refused.status_code, document["status"], document.get("field")) == (status, status, field), document
    assert refused.headers["content-type"] == "application/problem+json"
    assert words in document["detail"], document


def all_below(kind: type[RollwayError]) -> list[type[RollwayError]]:
    return [each for below in kind.__subclasses__() for each in (below, *all_below(below))]


def test_every_refusal_has_a_status_of_its_own_or_is_a_conflict() -> None:
    kinds = [kind for kind in all_below(RollwayError) if kind.__module__.startswith("domain.")]
    assert {kind.__name__ for kind in kinds if status_of(kind) == 404} == {
        *(kind.__name__ for kind in kinds if kind.__name__.endswith("NotFoundError")),
        "UnknownCommandError",
    }
    assert {400 <= status < 600 for status in STATUS.values()} == {True}


def test_pages_of_a_list_join_without_a_gap(people_server: People, web: str) -> None:
    with people_server.client(Role.OPERATOR) as client:
        for size in range(4, 11):
            client.post(f"/v1/deployments/{web}/scale", json={"desired_replicas": size})
        for path in (f"/v1/deployments/{web}/history", "/v1/deployments"):
            whole = client.get(path, params={"limit": 500}).json()["items"]
            pages: list[dict[str, Any]] = []
            cursor: str | None = ""
            while cursor is not None:
                page = client.get(path, params={"limit": 2, "cursor": cursor}).json()
                pages, cursor = [*pages, *page["items"]], page["next"]
            key = "message" if "history" in path else "name"
            assert [item[key] for item in pages] == [item[key] for item in whole]


def test_two_people_and_a_service_steer_at_once_and_each_is_told_who_won(people_server: People, web: str) -> None:
    path = f"/v1/deployments/{web}"

    def steer(client: httpx.Client, sizes: range) -> list[tuple[int, int]]:
        """With the version that was seen, so that nobody overwrites what another has just done."""
        told = []
        for size in sizes:
            etag = client.get(path).headers["etag"]
            answer = client.post(f"{path}/scale", json={"desired_replicas": size}, headers={"if-match": etag})
            assert answer.status_code in {200, 412}, answer.text
            told.append((answer.status_code, answer.json().get("version", 0)))
        return told

    actors = [f"{who}-{web[-6:]}" for who in ("ann", "bob", "ci")]
    with ExitStack() as open_now, ThreadPoolExecutor(3) as threads:
        clients = [open_now.enter_context(people_server.client(Role.OPERATOR, web, name=name)) for name in actors]
        told = list(threads.map(steer, clients, (range(10, 30), range(40, 60), range(70, 90))))
    won = [version for status, version in itertools.chain(*told) if status == 200]
    assert len(won) == len(set(won)) > 0, "no version was won by two"
    noted = read(
        people_server.engine, "SELECT actor FROM deployment_history WHERE phase = 'scale' AND actor = ANY(%s)", actors
    )
    assert {row["actor"] for row in noted} == {
        name for name, mine in zip(actors, told, strict=True) if dict(mine).get(200)
    }
    assert len(noted) == len(won)


def test_limits_of_bodies_and_of_what_one_token_may_ask(people_server: People, web: str) -> None:
    with people_server.client(Role.OPERATOR) as client:
        large = client.post(f"/v1/deployments/{web}/restart", content=b"{" + b" " * 300_000 + b"}")
        assert (large.status_code, large.headers["content-type"]) == (413, "application/problem+json")
    with people_server.client(Role.VIEWER) as known, people_server.stranger() as client:
        known.get("/v1/deployments")
        wrong = {"authorization": "Bearer wrong"}
        answers = [client.get("/v1/deployments", headers=wrong) for _ in range(40)]
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert answers[0].status_code == 401
        assert int(refused.headers["retry-after"]) >= 1
        assert known.get("/v1/deployments").status_code == 200, "who was let in before is not held up by who guesses"
