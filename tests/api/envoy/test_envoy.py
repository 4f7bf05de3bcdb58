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


STRIPPED: LiteralString = """
    INSERT INTO entrances (kind, value, deployment_id, strip_prefix) VALUES ('prefix', %s, %s, true)
"""


def served_by(edge: Edge, path: str, times: int = 20) -> set[str]:
    """Who answers that many requests."""
    return {edge.ask(path).json()["replica"] for _ in range(times)}


def test_a_deployment_is_reached_by_its_host_names_and_by_its_prefix(envoy_edge: Edge) -> None:
    with replicas("one") as (replica,):
        envoy_edge.make("■", replica, name="shop")
        envoy_edge.wait_for("/shop/")
        for host in ("shop", "shop.localhost", "SHOP:8080"):
            assert envoy_edge.ask("/a/b?c", host=host).json()["path"] == "/a/b?c"
        for asked, seen in (("/shop/a/b?c=d", "/a/b?c=d"), ("/shop", "/"), ("/shop/", "/"), ("/shop?x", "/?x")):
            assert envoy_edge.ask(asked).json()["path"] == seen
        assert envoy_edge.ask("/shops").status_code == 404


def test_a_prefix_may_stay_and_the_longest_one_goes_first(envoy_edge: Edge) -> None:
    with replicas("short", "long") as (short, long):
        write(envoy_edge.routes.engine, UNSTRIPPED, "/v1/", envoy_edge.make("■", short).id)
        write(envoy_edge.routes.engine, UNSTRIPPED, "/v1/deep", envoy_edge.make("■", long).id)
        envoy_edge.routes.tell()
        envoy_edge.wait_for("/v1/a")
        eventually(lambda: "long" in envoy_edge.ask("/v1/deep").text)
        assert (envoy_edge.ask("/v1/a").json()["replica"], envoy_edge.ask("/v1/a").json()["path"]) == ("short", "/v1/a")
        assert envoy_edge.ask("/v1/deep/a").json()["replica"] == "long"
        assert envoy_edge.ask("/v1/deep/a").json()["path"] == "/v1/deep/a"


def test_a_replica_is_told_the_prefix_that_it_does_not_see_and_believes_no_caller(envoy_edge: Edge) -> None:
    """Whether it is reached by a path, by a host name, or as a preview."""
    claims = {"x-forwarded-prefix": "/evil"}
    with replicas("blue", "green") as (blue, green):
        envoy_edge.make("■|□", blue, green, name="linked", status=DEPLOYING)
        kept = envoy_edge.make("■", blue)
        write(envoy_edge.routes.engine, UNSTRIPPED, "/kept/", kept.id)
        write(envoy_edge.routes.engine, STRIPPED, "/a-b/c/", kept.id)
        envoy_edge.routes.tell()
        envoy_edge.wait_for("/linked/")
        envoy_edge.wait_for("/kept/")
        preview = {"x-rollway-preview": "true"}
        asked: list[tuple[str, str | None, dict[str, str], str | None]] = [
            ("/linked/x", None, {}, "/linked"),
            ("/linked", None, {}, "/linked"),
            ("/linked/x", None, preview, "/linked"),
            ("/a-b/c/x", None, {}, "/a-b/c"),
            ("/kept/x", None, {}, None),
            ("/x", "linked", {}, None),
            ("/x", "linked", preview, None),
            ("/x", "preview.linked.localhost", {}, None),
        ]
        for path, host, headers, told in asked:
            by_host = {} if host is None else {"host": host}
            for claimed in ({}, claims):
                assert envoy_edge.ask(path, **by_host, **headers, **claimed).json()["prefix"] == told, (path, host)


def test_who_is_unknown_is_told_so_in_a_sentence(envoy_edge: Edge) -> None:
    envoy_edge.wait_for("/nothing", 404)
    assert envoy_edge.ask("/nothing").text.startswith("Rollway: no deployment is reached by this host name or path.")
    assert envoy_edge.ask("/", host="nobody.example").status_code == 404


def test_no_service_answers_by_the_host_name_of_the_page(envoy_edge: Edge) -> None:
    """A script of one could replace the session of who is logged in: nothing of it is sent from there."""
    with replicas("here") as (here,):
        made = envoy_edge.make("■", here)
        for taken in ("rollway.localhost", "old.rollway.localhost"):
            write(envoy_edge.routes.engine, "INSERT INTO entrances VALUES ('host', %s, %s)", taken, made.id)
        envoy_edge.routes.tell()
        eventually(lambda: envoy_edge.ask(f"/{made.name}/").status_code == 200)
        names = "rollway.localhost", "Rollway.LOCALHOST:80", "a.Evil.rollway.localhost:80", "evil.rollway.localhost.:80"
        for host in (*names, "rollway.localhost.", "old.rollway.localhost", "preview.old.rollway.localhost"):
            for path in (f"/{made.name}/", "/"):
                refused = envoy_edge.ask(path, host=host)
                assert (refused.status_code, "the page's alone" in refused.text) == (421, True)


def test_a_coming_revision_is_seen_by_header_and_by_host_and_by_nobody_else(envoy_edge: Edge) -> None:
    with replicas("blue", "green") as (blue, green):
        web = envoy_edge.make("■|□", blue, green, name="look", status=DEPLOYING)
        preview = {"x-rollway-preview": "true"}
        envoy_edge.wait_for("/look/", **preview)

        def seen(path: str, **headers: str) -> str:
            return str(envoy_edge.ask(path, **headers).json()["replica"])

        assert seen("/look/x", **preview) == seen("/x", host="look", **preview) == "green"
        assert seen("/x", host="preview.look") == seen("/x", host="preview.look.localhost:80") == "green"
        assert envoy_edge.ask("/look/x", **preview).json()["path"] == "/x"
        assert {seen("/look/"), seen("/", host="look"), seen("/look/", **{"x-rollway-preview": "false"})} == {"blue"}

        envoy_edge.routes.promote(web.routes[1:], web.routes[:1])
        eventually(lambda: envoy_edge.routes.released(web.routes[0]))
        for answer in (
            envoy_edge.ask("/look/", **preview),
            envoy_edge.ask("/", host="look", **preview),
            envoy_edge.ask("/", host="preview.look"),
        ):
            assert answer.status_code == 503
            assert answer.text == "Rollway: look has no revision to preview at the moment.\n"
        assert seen("/look/") == "green"


def test_health_is_a_hint_that_is_followed_while_somebody_is_healthy(envoy_edge: Edge) -> None:
    with replicas("well", "ill") as (well, ill):
        web = envoy_edge.make("■▲", well, ill)
        path = f"/{web.name}/"
        envoy_edge.wait_for(path)
        eventually(lambda: served_by(envoy_edge, path) == {"well"})
        envoy_edge.routes.ill(web.routes[0], "unhealthy")
        eventually(lambda: served_by(envoy_edge, path) == {"well", "ill"})
        envoy_edge.routes.ill(web.routes[1], "degraded")
        eventually(lambda: served_by(envoy_edge, path) == {"ill"})


def test_what_a_replica_answers_reaches_the_client_once_whatever_its_status(envoy_edge: Edge) -> None:
    with replicas("one", "two") as both:
        path = f"/{envoy_edge.make('■■', *both).name}/"
        envoy_edge.wait_for(path)
        for status in (500, 502, 503, 504, 429):
            for method in ("GET", "POST"):
                for replica in both:
                    replica.status = status
                    replica.served.clear()
                answer = envoy_edge.ask(path, method)
                assert (answer.status_code, answer.json()["replica"] in ("one", "two")) == (status, True)
                assert sum(sum(replica.served.values()) for replica in both) == 1


def test_a_replica_that_refuses_connections_costs_no_request(envoy_edge: Edge) -> None:
    with replicas("one") as (replica,):
        path = f"/{envoy_edge.make('■■', replica, '127.0.0.1:1').name}/"
        envoy_edge.wait_for(path)
        for method in ("GET", "PUT", "POST", "PATCH", "DELETE") * 10:
            assert envoy_edge.ask(path, method).status_code == 200


@pytest.mark.parametrize(("method", "status"), [("GET", 200), ("PUT", 200), ("POST", 503)])
def test_a_request_that_got_no_answer_is_sent_again_only_when_that_is_safe(
    envoy_edge: Edge, method: str, status: int
) -> None:
    with replicas("well", "hangs up") as (well, bad):
        path = f"/{envoy_edge.make('■■', well, bad).name}/"
        envoy_edge.wait_for(path)
        bad.hangs_up = True
        bad.served.clear()

        def met() -> bool:
            """Until one of the requests has met the replica that hangs up."""
            well.served.clear()
            answer = envoy_edge.ask(path, method)
            assert answer.status_code == (status if bad.served[method] else 200)
            return bool(bad.served[method])

        eventually(met)
        assert well.served[method] == (1 if status == 200 else 0)
        assert bad.served[method] == 1 or status == 200, "it may meet the same replica once more, though that is rare"


def test_a_deployment_may_limit_how_long_a_request_takes(envoy_edge: Edge) -> None:
    with replicas("slow") as (slow,):
        web = envoy_edge.make("■", slow)
        envoy_edge.wait_for(f"/{web.name}/")
        slow.seconds = 0.5
        assert envoy_edge.ask(f"/{web.name}/").status_code == 200
        write(envoy_edge.routes.engine, "UPDATE deployments SET request_timeout_seconds = 0.2 WHERE id = %s", web.id)
        envoy_edge.routes.tell()
        envoy_edge.wait_for(f"/{web.name}/", 504)


def test_a_share_of_requests_is_a_weight_and_none_is_none(envoy_edge: Edge) -> None:
    with replicas("most", "some", "none") as (most, some, none):
        web = envoy_edge.make("■■■", most, some, none)
        path = f"/{web.name}/"
        for route, ratio in zip(web.routes, (1, 0.25, 0), strict=True):
            write(envoy_edge.routes.engine, "UPDATE routes SET traffic_ratio = %s WHERE id = %s", ratio, route)
        envoy_edge.routes.tell()
        envoy_edge.wait_for(path)
        eventually(lambda: served_by(envoy_edge, path, 40) == {"most", "some"})
        for replica in (most, some, none):
            replica.served.clear()
        served_by(envoy_edge, path, 100)
        assert most.served["GET"] > 2 * some.served["GET"] > 0
        assert none.served["GET"] == 0


def test_a_replica_at_a_name_is_looked_up_and_one_at_nonsense_is_left_out(envoy_edge: Edge) -> None:
    with replicas("one") as (replica,):
        port = replica.address.rpartition(":")[2]
        web = envoy_edge.make("■■■", f"localhost:{port}", "nonsense", "no-such-host.invalid:1")
        envoy_edge.wait_for(f"/{web.name}/")
        assert served_by(envoy_edge, f"/{web.name}/") == {"one"}


def test_nothing_is_ever_refused_by_envoy_whatever_the_names_are(envoy_edge: Edge) -> None:
    hosts = ("{}", "{}.localhost", "{}.UPPER", "{}.upper", "*", "*.{}", "", "a b", "ü", "{}:80", "preview.{}")
    prefixes = ("/{}/", "/{}", "/{}/+(x)/", "/", "//", "/a?b/", "/a#b/", "no", "/a/../b/", "/%zz/", "/{}/[a]/")
    with replicas("one") as (replica,):
        for name in ("odd", "preview.odd", "a.b-c", "a.b-c.localhost"):
            made = envoy_edge.make("■", replica, name=name)
            for value in hosts:
                write(envoy_edge.routes.engine, ENTRANCE, "host", value.format(name), made.id)
            for value in prefixes:
                write(envoy_edge.routes.engine, ENTRANCE, "prefix", value.format(name), made.id)
        envoy_edge.routes.tell()
        eventually(lambda: envoy_edge.ask("/", host="a.b-c.upper").status_code == 200)
        assert envoy_edge.ask("/odd/+(x)/seen").json()["path"] == "/seen"
        counters = ("cluster_manager.cds", "http.rollway.rds.rollway", "cluster.odd", "cluster.a.b-c.localhost")
        assert [envoy_edge.envoy.stat(f"{counter}.update_rejected") for counter in counters] == [0, 0, 0, 0]
        write(envoy_edge.routes.engine, "DELETE FROM entrances WHERE value IN ('/', '//', 'no', '*')")
        envoy_edge.routes.tell()
        envoy_edge.wait_for("/nobody/", 404)  # or it would answer for what the next test waits for
