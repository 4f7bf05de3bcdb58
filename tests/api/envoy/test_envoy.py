"""A real Envoy, told by a real api process: who is reached, how often, and what is refused."""

from typing import LiteralString

import pytest

from domain.model.states import DeploymentLifecycleStatus, DeploymentSubStep, Lifecycle
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import replicas
from tests.support.rows.deployments import write
from tests.support.stack.waiting import eventually

DEPLOYING = DeploymentLifecycleStatus(Lifecycle.DEPLOYING, DeploymentSubStep.PROVISIONING)
ENTRANCE: LiteralString = (
    "INSERT INTO entrances (kind, value, deployment_id) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
)
UNSTRIPPED: LiteralString = """
    INSERT INTO entrances (kind, value, deployment_id, strip_prefix) VALUES ('prefix', %s, %s, false)
"""


def served_by(edge: Edge, path: str, times: int = 20) -> set[str]:
    """Who answers that many requests."""
    return {edge.ask(path).json()["replica"] for _ in range(times)}


def test_a_deployment_is_reached_by_its_host_names_and_by_its_prefix(edge: Edge) -> None:
    with replicas("one") as (replica,):
        edge.make("■", replica, name="shop")
        edge.wait_for("/shop/")
        for host in ("shop", "shop.localhost", "SHOP:8080"):
            assert edge.ask("/a/b?c", host=host).json()["path"] == "/a/b?c"
        for asked, seen in (("/shop/a/b?c=d", "/a/b?c=d"), ("/shop", "/"), ("/shop/", "/"), ("/shop?x", "/?x")):
            assert edge.ask(asked).json()["path"] == seen
        assert edge.ask("/shops").status_code == 404


def test_a_prefix_may_stay_and_the_longest_one_goes_first(edge: Edge) -> None:
    with replicas("short", "long") as (short, long):
        write(edge.routes.engine, UNSTRIPPED, "/v1/", edge.make("■", short).id)
        write(edge.routes.engine, UNSTRIPPED, "/v1/deep", edge.make("■", long).id)
        edge.routes.tell()
        edge.wait_for("/v1/a")
        eventually(lambda: "long" in edge.ask("/v1/deep").text)
        assert (edge.ask("/v1/a").json()["replica"], edge.ask("/v1/a").json()["path"]) == ("short", "/v1/a")
        assert edge.ask("/v1/deep/a").json()["replica"] == "long"
        assert edge.ask("/v1/deep/a").json()["path"] == "/v1/deep/a"


def test_who_is_unknown_is_told_so_in_a_sentence(edge: Edge) -> None:
    edge.wait_for("/nothing", 404)
    assert edge.ask("/nothing").text.startswith("Rollway: no deployment is reached by this host name or path.")
    assert edge.ask("/", host="nobody.example").status_code == 404


def test_no_service_answers_by_the_host_name_of_the_page(edge: Edge) -> None:
    """A script of one could replace the session of who is logged in: nothing of it is sent from there."""
    with replicas("here") as (here,):
        made = edge.make("■", here)
        for taken in ("rollway.localhost", "old.rollway.localhost"):
            write(edge.routes.engine, "INSERT INTO entrances VALUES ('host', %s, %s)", taken, made.id)
        edge.routes.tell()
        eventually(lambda: edge.ask(f"/{made.name}/").status_code == 200)
        names = "rollway.localhost", "Rollway.LOCALHOST:80", "a.Evil.rollway.localhost:80", "evil.rollway.localhost.:80"
        for host in (*names, "rollway.localhost.", "old.rollway.localhost", "preview.old.rollway.localhost"):
            for path in (f"/{made.name}/", "/"):
                refused = edge.ask(path, host=host)
                assert (refused.status_code, "the page's alone" in refused.text) == (421, True)


def test_a_coming_revision_is_seen_by_header_and_by_host_and_by_nobody_else(edge: Edge) -> None:
    with replicas("blue", "green") as (blue, green):
        web = edge.make("■|□", blue, green, name="look", status=DEPLOYING)
        preview = {"x-rollway-preview": "true"}
        edge.wait_for("/look/", **preview)

        def seen(path: str, **headers: str) -> str:
            return str(edge.ask(path, **headers).json()["replica"])

        assert seen("/look/x", **preview) == seen("/x", host="look", **preview) == "green"
        assert seen("/x", host="preview.look") == seen("/x", host="preview.look.localhost:80") == "green"
        assert edge.ask("/look/x", **preview).json()["path"] == "/x"
        assert {seen("/look/"), seen("/", host="look"), seen("/look/", **{"x-rollway-preview": "false"})} == {"blue"}

        edge.routes.promote(web.routes[1:], web.routes[:1])
        eventually(lambda: edge.routes.released(web.routes[0]))
        for answer in (
            edge.ask("/look/", **preview),
            edge.ask("/", host="look", **preview),
            edge.ask("/", host="preview.look"),
        ):
            assert answer.status_code == 503
            assert answer.text == "Rollway: look has no revision to preview at the moment.\n"
        assert seen("/look/") == "green"


def test_health_is_a_hint_that_is_followed_while_somebody_is_healthy(edge: Edge) -> None:
    with replicas("well", "ill") as (well, ill):
        web = edge.make("■▲", well, ill)
        path = f"/{web.name}/"
        edge.wait_for(path)
        eventually(lambda: served_by(edge, path) == {"well"})
        edge.routes.ill(web.routes[0], "unhealthy")
        eventually(lambda: served_by(edge, path) == {"well", "ill"})
        edge.routes.ill(web.routes[1], "degraded")
        eventually(lambda: served_by(edge, path) == {"ill"})


def test_what_a_replica_answers_reaches_the_client_once_whatever_its_status(edge: Edge) -> None:
    with replicas("one", "two") as both:
        path = f"/{edge.make('■■', *both).name}/"
        edge.wait_for(path)
        for status in (500, 502, 503, 504, 429):
            for method in ("GET", "POST"):
                for replica in both:
                    replica.status = status
                    replica.served.clear()
                answer = edge.ask(path, method)
                assert (answer.status_code, answer.json()["replica"] in ("one", "two")) == (status, True)
                assert sum(sum(replica.served.values()) for replica in both) == 1


def test_a_replica_that_refuses_connections_costs_no_request(edge: Edge) -> None:
    with replicas("one") as (replica,):
        path = f"/{edge.make('■■', replica, '127.0.0.1:1').name}/"
        edge.wait_for(path)
        for method in ("GET", "PUT", "POST", "PATCH", "DELETE") * 10:
            assert edge.ask(path, method).status_code == 200


@pytest.mark.parametrize(("method", "status"), [("GET", 200), ("PUT", 200), ("POST", 503)])
def test_a_request_that_got_no_answer_is_sent_again_only_when_that_is_safe(
    edge: Edge, method: str, status: int
) -> None:
    with replicas("well", "hangs up") as (well, bad):
        path = f"/{edge.make('■■', well, bad).name}/"
        edge.wait_for(path)
        bad.hangs_up = True
        bad.served.clear()

        def met() -> bool:
            """Until one of the requests has met the replica that hangs up."""
            well.served.clear()
            answer = edge.ask(path, method)
            assert answer.status_code == (status if bad.served[method] else 200)
            return bool(bad.served[method])

        eventually(met)
        assert well.served[method] == (1 if status == 200 else 0)
        assert bad.served[method] == 1 or status == 200, "it may meet the same replica once more, though that is rare"


def test_a_deployment_may_limit_how_long_a_request_takes(edge: Edge) -> None:
    with replicas("slow") as (slow,):
        web = edge.make("■", slow)
        edge.wait_for(f"/{web.name}/")
        slow.seconds = 0.5
        assert edge.ask(f"/{web.name}/").status_code == 200
        write(edge.routes.engine, "UPDATE deployments SET request_timeout_seconds = 0.2 WHERE id = %s", web.id)
        edge.routes.tell()
        edge.wait_for(f"/{web.name}/", 504)


def test_a_share_of_requests_is_a_weight_and_none_is_none(edge: Edge) -> None:
    with replicas("most", "some", "none") as (most, some, none):
        web = edge.make("■■■", most, some, none)
        path = f"/{web.name}/"
        for route, ratio in zip(web.routes, (1, 0.25, 0), strict=True):
            write(edge.routes.engine, "UPDATE routes SET traffic_ratio = %s WHERE id = %s", ratio, route)
        edge.routes.tell()
        edge.wait_for(path)
        eventually(lambda: served_by(edge, path, 40) == {"most", "some"})
        for replica in (most, some, none):
            replica.served.clear()
        served_by(edge, path, 100)
        assert most.served["GET"] > 2 * some.served["GET"] > 0
        assert none.served["GET"] == 0


def test_a_replica_at_a_name_is_looked_up_and_one_at_nonsense_is_left_out(edge: Edge) -> None:
    with replicas("one") as (replica,):
        port = replica.address.rpartition(":")[2]
        web = edge.make("■■■", f"localhost:{port}", "nonsense", "no-such-host.invalid:1")
        edge.wait_for(f"/{web.name}/")
        assert served_by(edge, f"/{web.name}/") == {"one"}


def test_nothing_is_ever_refused_by_envoy_whatever_the_names_are(edge: Edge) -> None:
    hosts = ("{}", "{}.localhost", "{}.UPPER", "{}.upper", "*", "*.{}", "", "a b", "ü", "{}:80", "preview.{}")
    prefixes = ("/{}/", "/{}", "/{}/+(x)/", "/", "//", "/a?b/", "/a#b/", "no", "/a/../b/", "/%zz/", "/{}/[a]/")
    with replicas("one") as (replica,):
        for name in ("odd", "preview.odd", "a.b-c", "a.b-c.localhost"):
            made = edge.make("■", replica, name=name)
            for value in hosts:
                write(edge.routes.engine, ENTRANCE, "host", value.format(name), made.id)
            for value in prefixes:
                write(edge.routes.engine, ENTRANCE, "prefix", value.format(name), made.id)
        edge.routes.tell()
        eventually(lambda: edge.ask("/", host="a.b-c.upper").status_code == 200)
        assert edge.ask("/odd/+(x)/seen").json()["path"] == "/seen"
        counters = ("cluster_manager.cds", "http.rollway.rds.rollway", "cluster.odd", "cluster.a.b-c.localhost")
        assert [edge.envoy.stat(f"{counter}.update_rejected") for counter in counters] == [0, 0, 0, 0]
        write(edge.routes.engine, "DELETE FROM entrances WHERE kind = 'prefix' AND value IN ('/', '//', 'no')")
