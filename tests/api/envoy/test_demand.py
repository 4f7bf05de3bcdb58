"""What a real Envoy is asked of a deployment with an autoscaling rule, read by a real api process, as one row."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge, api_process
from tests.support.proxies.web_replicas import Replica, replicas
from tests.support.rows.deployments import Made, ask, read, write
from tests.support.stack.waiting import eventually

RULE: dict[str, Any] = {"source": "proxy", "comparator": ">", "threshold": 1e6, "step": 1, "max_replicas": 3}
REQUESTS, UNDER_WAY = "sum(requests_per_second) of proxies", "avg(answers_under_way) of proxies"
MUTE = "INSERT INTO proxies (node_id, kind, silence_seconds) VALUES ('mute', 'envoy', 60)"


@pytest.fixture
def two() -> Iterator[list[Replica]]:
    with replicas("one", "two") as both:
        yield both


def ruled(edge: Edge, two: list[Replica]) -> Made:
    made = edge.make("■■", *two, n=2)
    rules = [{**RULE, "metric": "requests_per_second", "aggregate": "sum"}, {**RULE, "metric": "answers_under_way"}]
    ask(edge.routes.engine, "set_autoscaling_rules", deployment=made.name, rules=rules)
    eventually(lambda: edge.ask(f"/{made.name}/").status_code == 200)
    return made


def told(edge: Edge, made: Made, series: str) -> dict[str, Any]:
    """The row of a series; a value of nothing before there is one."""
    query = "SELECT value, proxies, silent, at FROM metric_values WHERE deployment_id = %s AND series = %s"
    rows = read(edge.routes.engine, query, made.id, series)
    return rows[0] if rows else {"value": 0, "proxies": 0, "silent": [], "at": None}


def test_requests_and_answers_under_way_are_told_and_with_the_end_of_the_load_there_are_none(
    envoy_edge: Edge, two: list[Replica]
) -> None:
    made, over = ruled(envoy_edge, two), Event()

    def client() -> None:
        while not over.wait(0.02):
            plain_http.get(f"{envoy_edge.envoy.url}/{made.name}/")

    for replica in two:
        replica.trickles = 0.2
    with ThreadPoolExecutor(2) as pool:
        clients = [pool.submit(client) for _ in range(2)]
        try:
            eventually(lambda: told(envoy_edge, made, REQUESTS)["value"] > 0, what="requests a second")
            eventually(lambda: told(envoy_edge, made, UNDER_WAY)["value"] > 0, what="answers under way")
        finally:
            over.set()
        for each in clients:
            each.result()
    assert told(envoy_edge, made, REQUESTS)["value"] < 40, "two clients, each at most five a second"
    assert told(envoy_edge, made, UNDER_WAY)["value"] <= 1, "two answers at two replicas"
    assert (told(envoy_edge, made, REQUESTS)["proxies"], told(envoy_edge, made, REQUESTS)["silent"]) == (1, [])
    assert len(read(envoy_edge.routes.engine, "SELECT FROM metric_values WHERE deployment_id = %s", made.id)) == 2
    eventually(lambda: told(envoy_edge, made, UNDER_WAY)["value"] == 0, what="no answer under way")


def test_a_proxy_that_tells_nothing_is_named_and_whichever_server_is_killed_the_number_is_told(
    envoy_edge: Edge, two: list[Replica], redis_url: str, module_database: str, tmp_path: Path
) -> None:
    made, second = ruled(envoy_edge, two), api_process(module_database, redis_url, tmp_path)
    write(envoy_edge.routes.engine, MUTE)
    second.start()
    try:
        eventually(lambda: told(envoy_edge, made, REQUESTS)["silent"] == ["mute"])
        envoy_edge.api.end(kill=True)
        before = told(envoy_edge, made, REQUESTS)["at"]
        eventually(lambda: told(envoy_edge, made, REQUESTS)["at"] > before)
        assert (told(envoy_edge, made, REQUESTS)["proxies"], told(envoy_edge, made, REQUESTS)["silent"]) == (
            2,
            ["mute"],
        )
    finally:
        second.end(kill=True)
        envoy_edge.api.start()
        write(envoy_edge.routes.engine, "DELETE FROM proxies WHERE node_id = 'mute'")


def test_who_asks_in_vain_counts_too_so_that_a_first_replica_comes(envoy_edge: Edge) -> None:
    made = envoy_edge.make("", n=0)
    rules = [{**RULE, "metric": "requests_per_second", "aggregate": "sum", "min_replicas": 0}]
    ask(envoy_edge.routes.engine, "set_autoscaling_rules", deployment=made.name, rules=rules)
    eventually(lambda: envoy_edge.ask(f"/{made.name}/").status_code == 503)
    eventually(
        lambda: envoy_edge.ask(f"/{made.name}/").status_code == 503 and told(envoy_edge, made, REQUESTS)["value"] > 0
    )
