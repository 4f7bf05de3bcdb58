"""What a real Traefik makes of the table that it polls: where requests go, in which shares, and where none goes."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.pictures.pictures import PROVISIONING
from tests.support.pictures.policies import CANARY
from tests.support.proxies.edge import Edge, api_process
from tests.support.proxies.http2_replica import http2_replica
from tests.support.proxies.traefik import behind_traefik, traefik_process
from tests.support.proxies.web_replicas import Replica, replicas
from tests.support.proxies.weights import is_likely, set_weight
from tests.support.rows.deployments import write
from tests.support.stack.server_process import running
from tests.support.stack.waiting import eventually

ASKED = 500


@pytest.fixture(scope="module")
def traefik_edge(module_database: str, module_redis: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    """An api process and a Traefik that polls it, for all tests here; each has a deployment of its own."""
    folder = tmp_path_factory.mktemp("traefik")
    api = api_process(module_database, module_redis, folder)
    with behind_traefik(api, module_database, module_redis, folder) as made:
        yield made


def asked_of(replica: Replica, *, during: int, of: Counter[int]) -> int:
    """How many requests it gets while so many are answered."""
    before, answered = replica.served["GET"], of.total()
    eventually(lambda: of.total() >= answered + during)
    return replica.served["GET"] - before


def test_a_deployment_is_reached_by_its_host_names_and_by_its_prefix_and_by_nothing_else(traefik_edge: Edge) -> None:
    with replicas("one") as (replica,):
        traefik_edge.make("■", replica, name="shop")
        traefik_edge.wait_for("/shop/")
        for host in ("shop", "shop.localhost", "SHOP:8080"):
            assert traefik_edge.ask("/a/b?c", host=host).json()["path"] == "/a/b?c"
        for asked, seen in (("/shop/a/b?c=d", "/a/b?c=d"), ("/shop", "/"), ("/shop/", "/"), ("/shop?x", "/?x")):
            assert traefik_edge.ask(asked).json()["path"] == seen
        assert traefik_edge.ask("/shops").status_code == 404
        assert traefik_edge.ask("/", host="nobody.example").status_code == 404


def test_a_coming_revision_is_seen_by_header_and_where_there_is_none_nothing_is(traefik_edge: Edge) -> None:
    with replicas("live", "coming") as both:
        traefik_edge.make("■|□", *both, name="previewed", status=PROVISIONING)
        traefik_edge.wait_for("/previewed/")
        asked = [
            traefik_edge.ask("/previewed/", **{"x-rollway-preview": value}).json()["replica"]
            for value in ("yes", "false")
        ]
        assert asked == ["coming", "live"]
        traefik_edge.make("■", both[0], name="alone")
        traefik_edge.wait_for("/alone/")
        assert traefik_edge.ask("/alone/", **{"x-rollway-preview": "yes"}).status_code == 502


def test_requests_are_split_by_the_weight_of_a_canary_and_none_is_lost_while_it_changes(traefik_edge: Edge) -> None:
    with replicas("old", "new") as both:
        made = traefik_edge.make("■|■", *both, name="split", status=PROVISIONING, policy=CANARY)
        traefik_edge.wait_for("/split/")
        with traefik_edge.asked_all_the_time("/split/") as statuses:
            for weight in (0, 9000, 2000):
                set_weight(traefik_edge, made, weight)
        assert set(statuses) == {200}
        counted = Counter(traefik_edge.ask("/split/").json()["replica"] for _ in range(ASKED))
        assert is_likely(counted["new"], ASKED, 0.2)


def test_a_replica_that_left_is_asked_no_more_and_no_request_is_lost_when_it_ends(traefik_edge: Edge) -> None:
    with replicas("stays", "leaves") as (stays, leaves):
        made = traefik_edge.make("■■", stays, leaves, name="leaving")
        traefik_edge.wait_for("/leaving/")
        with traefik_edge.asked_all_the_time("/leaving/") as statuses:
            eventually(lambda: leaves.served["GET"], what="it is asked")
            traefik_edge.routes.drain(made.routes[1])
            eventually(lambda: traefik_edge.routes.released(made.routes[1]))
            # a request that was sent before may still be on its way
            eventually(lambda: asked_of(leaves, during=50, of=statuses) == 0, what="it to be asked no longer")
            leaves.close()
            assert asked_of(leaves, during=100, of=statuses) == 0
        assert set(statuses) == {200}


def test_replicas_that_speak_http2_alone_are_asked_in_it(traefik_edge: Edge) -> None:
    with http2_replica() as replica:
        web = traefik_edge.make("■", replica)
        write(traefik_edge.routes.engine, "UPDATE deployments SET protocol = 'http2' WHERE id = %s", web.id)
        traefik_edge.routes.tell()
        traefik_edge.wait_for(f"/{web.name}/")
        assert traefik_edge.ask(f"/{web.name}/").headers["x-spoken"] == "HTTP/2"


def test_one_that_polls_more_often_than_it_takes_over_is_waited_for_until_it_has(
    traefik_edge: Edge, tmp_path: Path
) -> None:
    """It has just taken a table over, so it does not look at the next one before its throttle is over."""
    traefik = traefik_process(traefik_edge.api, tmp_path, "traefik-2", poll_seconds=0.2, throttle_seconds=2)
    slow = Edge(traefik_edge.routes, traefik_edge.api, traefik)
    with replicas("stays", "leaves") as (stays, leaves), running(traefik):
        made = slow.make("■■", stays, leaves, name="slowly")
        slow.wait_for("/slowly/")
        with slow.asked_all_the_time("/slowly/") as statuses:
            traefik_edge.routes.drain(made.routes[1])
            eventually(lambda: traefik_edge.routes.released(made.routes[1]))
            assert asked_of(leaves, during=50, of=statuses) == 0
            leaves.close()
            assert asked_of(leaves, during=50, of=statuses) == 0
        assert set(statuses) == {200}
