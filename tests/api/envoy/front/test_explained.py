"""`rollway traffic --explain`: what is said of a URL is what a real Envoy does with it."""

import json
from contextlib import closing
from http.client import HTTPConnection

import pytest

from db.connection.transactions import transaction
from db.proxies.traffic_reader import read_traffic
from domain.text.errors import InvalidInputError
from tests.support.pictures.pictures import READY
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import replicas
from tests.support.rows.deployments import ask, write
from traffic.explanation import AskedFor, Explanation, explain
from traffic.routing_table import derive_table

ENTRANCE = "INSERT INTO entrances (kind, value, deployment_id, strip_prefix) VALUES (%s, %s, %s, true)"

URLS = {
    "http://one.example.com/": "one",
    "http://ONE.example.com:8443/x": "one",
    "http://other.example.com/": "any",
    "http://a.b.example.com/": "deep",
    "http://elsewhere.org/one": "one",
    "http://elsewhere.org/one/x": "one",
    "http://elsewhere.org/one/deep/x": "deep",
    "http://elsewhere.org/oneself": None,
    "http://elsewhere.org/": None,
    "http://rollway.localhost/one/": None,
    "http://evil.rollway.localhost/one/": None,
    "http://rollway.localhost./one/": None,
    "http://unrollway.localhost/one/x": "one",
    "http://any.example.com/one/": "any",
}
"""By whom each is answered."""


def said_of(edge: Edge, url: str) -> Explanation:
    with transaction(edge.routes.engine) as connection:
        return explain(derive_table(read_traffic(connection)), AskedFor.parse(url))


def test_what_is_said_is_what_a_proxy_does(envoy_edge: Edge) -> None:
    with replicas("one", "any", "deep") as behind:
        made = {replica.name: envoy_edge.make("■", replica, name=replica.name) for replica in behind}
        for name, kind, value in (
            ("one", "host", "one.example.com"),
            ("any", "host", "*.example.com"),
            ("deep", "host", "*.b.example.com"),
            ("deep", "prefix", "/one/deep/"),
        ):
            write(envoy_edge.routes.engine, ENTRANCE, kind, value, made[name].id)
        envoy_edge.routes.tell()
        envoy_edge.wait_for("/", host="a.b.example.com")
        for url, owner in URLS.items():
            asked, found = AskedFor.parse(url), said_of(envoy_edge, url)
            answer = envoy_edge.ask(asked.path, host=asked.host)
            got = answer.json()["replica"] if answer.status_code == 200 else None
            assert (got, found.service if found.replicas else None) == (owner, owner), url
            if owner is not None:
                assert f"its replicas see {answer.json()['path']}" in found.said[-2].says, url


def test_a_path_is_folded_as_a_proxy_folds_it(envoy_edge: Edge) -> None:
    paths = ["/fold/../fold/x", "/fold/./a/../b/", "/fold/a/..", "/fold/%2e%2E/fold/y", "/fold/a\\b", "/fold//a/../b"]
    with replicas("fold") as (behind,):
        envoy_edge.make("■", behind, name="fold")
        envoy_edge.routes.tell()
        envoy_edge.wait_for("/fold/")
        for path in paths:
            with closing(HTTPConnection("127.0.0.1", envoy_edge.envoy.port)) as asking:
                asking.request("GET", path, headers={"host": "elsewhere.org"})
                seen = json.load(asking.getresponse())["path"]
            assert (
                said_of(envoy_edge, f"http://elsewhere.org{path}").said[1].says.endswith(f"its replicas see {seen}")
            ), path


def test_what_a_proxy_answers_itself_is_said(envoy_edge: Edge) -> None:
    with replicas("here") as (here,):
        envoy_edge.make("■", here, name="down")
        ask(envoy_edge.routes.engine, "set_maintenance", deployment="down", state="on", allow="x-inside")
        envoy_edge.routes.tell()
        envoy_edge.wait_for("/down/", 503)
        assert said_of(envoy_edge, "down.localhost/").said[-1].says == (
            "down is in maintenance: a proxy answers 503 unless the request has the header that gets through"
        )
    empty = envoy_edge.make("", name="empty", status=READY)
    assert "no replica serves: a proxy answers 503" in said_of(envoy_edge, "http://empty/").said[-1].says
    write(envoy_edge.routes.engine, """UPDATE deployments SET rules = '{"hold_seconds": 20}' WHERE id = %s""", empty.id)
    assert "waits for one, for 20 s" in said_of(envoy_edge, "http://empty/").said[-1].says
    assert "has no traffic.tls" in said_of(envoy_edge, "https://empty/").said[1].says


@pytest.mark.parametrize("url", ["", "ftp://web/", "http:///x", "http://[::1"])
def test_what_is_no_url_is_refused_by_its_field(url: str) -> None:
    with pytest.raises(InvalidInputError, match="--explain must be a URL"):
        AskedFor.parse(url)
