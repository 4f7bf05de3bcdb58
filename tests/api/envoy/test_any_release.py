"""Any file after any other, then the way back: what callers get of a real Envoy is as it was before."""

from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any
from uuid import uuid4

import pytest

from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import Replica, replicas
from tests.support.rows.deployments import ask, make_deployment, read, write
from tests.support.rows.releases import STRATEGIES, apply, file, go_on, look, settle, stage_of

HOSTS = ("a.example.com", "b.example.com", "web", "elsewhere")
PATHS = ("/", "/web/x", "/api/v3/x")


@pytest.fixture
def both(envoy_edge: Edge) -> Iterator[dict[str, Replica]]:
    """The replica that stands for all of a revision; in the end its deployment has another name, and no entrance."""
    with replicas("v1", "v3") as (old, new):
        yield {"v1": old, "v3": new}
    write(envoy_edge.routes.engine, "DELETE FROM entrances")
    write(envoy_edge.routes.engine, "UPDATE deployments SET name = 'was-' || left(id::text, 18) WHERE name = 'web'")


def settings(chance: Random) -> dict[str, Any]:
    traffic = {
        "hosts": chance.sample(["a.example.com", "b.example.com", "web"], chance.randrange(1, 3)),
        "path_prefix": chance.choice(["/web/", "/api/v3/", None]),
        "strip_prefix": chance.random() < 0.5,
        "sticky": chance.choice([None, {"cookie": "mine"}]),
        "max_body_bytes": chance.choice([None, 1000]),
    }
    chosen = {"replicas": chance.randrange(1, 5), "traffic": traffic}
    return {name: value for name, value in chosen.items() if chance.random() < 0.8}


def told(edge: Edge, both: dict[str, Replica]) -> None:
    """Let each route lead to the replica of its revision, and proxies know it."""
    for name, replica in both.items():
        query = "UPDATE routes r SET address = %s FROM revisions v WHERE v.id = r.revision_id AND v.name = %s"
        write(edge.routes.engine, query, replica.address, name)
    edge.routes.tell()


def wait_until_all_is_told(edge: Edge) -> None:
    """The proxy has what is stored: an entrance that is made now is told after all that was before it."""
    marker = f"m{uuid4().hex}"
    (web,) = read(edge.routes.engine, "SELECT id FROM deployments WHERE name = 'web'")
    query = "INSERT INTO entrances (kind, value, deployment_id) VALUES ('host', %s, %s)"
    write(edge.routes.engine, query, marker, web["id"])
    edge.routes.tell()
    edge.wait_for("/", 200, host=marker)
    write(edge.routes.engine, "DELETE FROM entrances WHERE value = %s", marker)


def got(edge: Edge) -> list[tuple[object, ...]]:
    """What a caller gets of each entrance that there may be: of a small request, and of a large one."""
    answers: list[tuple[object, ...]] = []
    for host, path, size in product(HOSTS, PATHS, (1, 2000)):
        answer = plain_http.post(edge.envoy.url + path, headers={"host": host}, content="x" * size)
        body = answer.json() if answer.status_code == 200 else {}
        cookie = answer.headers.get("set-cookie", "").partition("=")[0]
        answers.append((host, path, size, answer.status_code, body.get("replica"), body.get("path"), cookie))
    return answers


@pytest.mark.parametrize("seed", range(50))
def test_what_callers_get_is_as_before(envoy_edge: Edge, both: dict[str, Replica], seed: int) -> None:
    chance, engine = Random(seed), envoy_edge.routes.engine
    made = make_deployment(engine, "■■■", policy=STRATEGIES[chance.choice(list(STRATEGIES))])
    envoy_edge.routes.reached(made.id, made.name)
    apply(engine, {"deployment": "web", **settings(chance)})
    settle(engine, made)
    told(envoy_edge, both)
    wait_until_all_is_told(envoy_edge)
    before = got(envoy_edge)
    apply(engine, file("v3", **settings(chance)))
    for _ in range(chance.randrange(12)):
        look(engine, made)
        told(envoy_edge, both)
    if stage_of(engine, made) != "ended":
        ask(engine, "abort", deployment="web")
        go_on(engine, made, "ended")
    if read(engine, "SELECT FROM rollouts WHERE outcome = 'completed' AND deployment_id = %s", made.id):
        ask(engine, "undo", deployment="web")
        go_on(engine, made, "ended")
    told(envoy_edge, both)
    wait_until_all_is_told(envoy_edge)
    assert got(envoy_edge) == before
