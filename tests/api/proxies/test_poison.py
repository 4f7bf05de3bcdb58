"""What cannot be stored never enters, and what Postgres refuses is a matter of that proxy alone."""

from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge
from tests.support.proxies.streaming import Node
from tests.support.rows.deployments import Made, write
from tests.support.stack.waiting import eventually
from traffic.resources import ResourceKind


def test_what_postgres_cannot_hold_is_refused(envoy_edge: Edge) -> None:
    assert plain_http.get(f"{envoy_edge.api.url}/traefik?node=a%00b").status_code == 422


def test_a_proxy_that_postgres_refuses_stops_no_acknowledgement_of_another(
    envoy_edge: Edge, eight_replicas: Made
) -> None:
    usual = max(envoy_edge.seconds_of_a_drain(route) for route in eight_replicas.routes[:2])
    engine = envoy_edge.routes.engine
    write(engine, "ALTER TABLE proxies ADD CONSTRAINT no_poison CHECK (node_id <> 'poison')")
    try:
        with Node(envoy_edge.api, "poison") as poison:
            poison.ask(ResourceKind.CLUSTERS)
            eventually(lambda: plain_http.get(f"{envoy_edge.api.url}/healthz").json()["failed_writes"] > 0)
            assert max(envoy_edge.seconds_of_a_drain(route) for route in eight_replicas.routes[2:5]) < 20 * usual + 1
            assert poison.hear().resources
        assert "rollway_proxy_writes_failed_total 0.0" not in plain_http.get(f"{envoy_edge.api.url}/metrics").text
        assert envoy_edge.known() >= {"edge-1"}
        eventually(lambda: plain_http.get(f"{envoy_edge.api.url}/healthz").json()["acknowledgements"] == "ok")
    finally:
        write(engine, "ALTER TABLE proxies DROP CONSTRAINT no_poison")
