"""A new replica by a real Envoy: its share of the requests grows where that is set, and is full at once elsewhere."""

import time

import pytest
from psycopg.types.json import Jsonb

from domain.model.states import RouteStatus
from domain.traffic.snapshot import RequestRules, stored_together
from tests.support.people.asking import page
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import replicas
from tests.support.rows.deployments import become, write
from tests.support.stack.waiting import eventually

WINDOW, ASKED = 30, 100


@pytest.mark.parametrize(("seconds", "least", "most"), [(None, 30, 70), (WINDOW, 1, 34)])
def test_the_share_of_a_new_replica_grows(envoy_edge: Edge, seconds: float | None, least: int, most: int) -> None:
    with replicas("old", "new") as (old, new):
        made, engine = envoy_edge.make("■◇", old, new, n=2), envoy_edge.routes.engine
        rules = Jsonb(stored_together(RequestRules(slow_start_seconds=seconds)))
        write(engine, "UPDATE deployments SET rules = %s WHERE id = %s", rules, made.id)
        envoy_edge.routes.tell()
        path = f"/{made.name}/"
        envoy_edge.wait_for(path)
        time.sleep(seconds or 0)  # by Envoy's own clock the old one is new until then
        become(engine, RouteStatus.HEALTHY, made.routes[1])
        envoy_edge.routes.at(made.routes[1], new.address)
        envoy_edge.routes.tell()

        def is_known() -> bool:
            table = page(envoy_edge.api.url, "/v1/traffic")
            return str(made.routes[1]) in table.text and all(it["is_current"] for it in table.json()["proxies"])

        eventually(is_known, what="the proxy to know the new replica")
        for _ in range(ASKED):
            assert envoy_edge.ask(path).status_code == 200
        assert least <= new.served["GET"] <= most
