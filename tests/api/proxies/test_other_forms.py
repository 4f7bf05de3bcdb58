"""The table as Traefik, Prometheus and a person get it, and what the server says of its health."""

from uuid import UUID

from db.connection.transactions import in_transaction
from db.proxies.acks import list_proxies
from tests.support.people.asking import with_token
from tests.support.proxies import plain_http
from tests.support.proxies.edge import EdgeRoutes
from tests.support.proxies.streaming import live_servers
from tests.support.rows.deployments import Made, make_deployment
from tests.support.stack.server_process import Process
from tests.support.stack.waiting import eventually


def test_traefik_acknowledges_a_table_by_a_poll_that_comes_after_its_throttle(routes: EdgeRoutes, api: Process) -> None:
    web = make_deployment(routes.engine, "■■■", n=1)
    routes.reached(web.id, "web")
    routes.tell()
    eventually(lambda: live_servers(api, "web") == 3)

    def poll(throttle_seconds: float, poll_seconds: float = 60) -> int:
        times = {"poll_seconds": str(poll_seconds), "throttle_seconds": str(throttle_seconds)}
        asked = {**with_token("edge"), **times}
        http = plain_http.get(f"{api.url}/traefik", params=asked).json()["http"]
        return len(http["services"]["web"]["loadBalancer"]["servers"])

    def has_acknowledged() -> bool:
        (proxy,) = in_transaction(routes.engine, list_proxies)
        return proxy.acked_version is not None

    def lets_go(route: UUID) -> bool:
        poll(0)
        return routes.released(route)

    assert [poll(60), poll(60)] == [3, 3]
    assert not has_acknowledged(), "told, but maybe not taken over"
    eventually(lambda: poll(0) and has_acknowledged())
    routes.drain(web.routes[0])
    eventually(lambda: live_servers(api, "web") == 2)
    assert [poll(60), poll(60)] == [2, 2]
    assert not routes.released(web.routes[0])
    eventually(lambda: lets_go(web.routes[0]))
    (proxy,) = in_transaction(routes.engine, list_proxies)
    assert (proxy.node_id, proxy.kind, proxy.is_live) == ("edge", "traefik", True)
    # it polls no more, and after three of its intervals it is waited for no more
    poll(0, poll_seconds=1)
    routes.drain(web.routes[1])
    eventually(lambda: routes.released(web.routes[1]))


def test_prometheus_reads_and_nobody_waits_for_it(shared_server: tuple[EdgeRoutes, Process], web: Made) -> None:
    routes, api = shared_server
    answer = plain_http.get(f"{api.url}/prometheus/targets", params=with_token("prometheus"))
    assert "prometheus" not in [proxy.node_id for proxy in in_transaction(routes.engine, list_proxies)]
    assert answer.headers["content-type"] == "application/json"
    own = [target for target in answer.json() if target["labels"]["deployment"] == web.name]
    assert len(own) == 3


def test_health_names_what_is_served_and_what_is_away(shared_server: tuple[EdgeRoutes, Process]) -> None:
    eventually(lambda: plain_http.get(f"{shared_server[1].url}/healthz").json()["redis"] == "ok")
    health = plain_http.get(f"{shared_server[1].url}/healthz").json()
    assert (health["status"], health["postgres"], len(health["table_version"])) == ("ok", "ok", 16)
    assert health["table_age_seconds"] < 5
