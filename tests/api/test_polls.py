"""Polls by hand, and the table in its other forms, from a real api process."""

import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from db.engine import transaction
from tests.support import plain_http
from tests.support.asking import page
from tests.support.deployments import Made, make_deployment
from tests.support.edge import EdgeRoutes
from tests.support.polling import Node, in_background, live_servers
from tests.support.server_process import Process
from tests.support.waiting import eventually


def test_a_first_poll_is_answered_at_once_and_the_next_one_when_something_changes(
    shared: tuple[EdgeRoutes, Process], web: Made, node: Node
) -> None:
    first = node.take("endpoints", web.name)
    assert len(first["resources"][0]["endpoints"][0]["lb_endpoints"]) == 3
    with ThreadPoolExecutor() as threads:
        held = in_background(threads, node, "endpoints", web.name)
        began = time.monotonic()
        shared[0].drain(web.routes[0])
        second = held.result()
    assert time.monotonic() - began < 10, "a poll that nothing happens to takes 20 s"
    assert second is not None
    assert len(second["resources"][0]["endpoints"][0]["lb_endpoints"]) == 2


@pytest.mark.e2e
def test_a_poll_that_nothing_happens_to_ends_with_304_after_20_seconds(web: Made, node: Node) -> None:
    node.take("endpoints", web.name)
    began = time.monotonic()
    assert node.poll("endpoints", web.name) is None
    assert time.monotonic() - began > 19


def test_a_drain_waits_until_the_poll_after_the_answer(routes: EdgeRoutes, api: Process) -> None:
    web, node = make_deployment(routes.engine, "■■", n=1), Node(api)
    routes.tell()
    eventually(lambda: live_servers(api, "web") == 2)
    for subscription in (("clusters",), ("routes", "rollway"), ("endpoints", "web")):
        node.take(*subscription)
    routes.drain(web.routes[0])
    answer = eventually(lambda: node.poll("endpoints", "web"))
    node.acknowledge("clusters")
    node.acknowledge("routes", "rollway")
    time.sleep(0.2)
    assert not routes.released(web.routes[0]), "it was told, and may not have taken it over"
    node.held["endpoints/web"] = answer["version_info"]
    node.acknowledge("endpoints", "web")
    eventually(lambda: routes.released(web.routes[0]))


def test_what_a_proxy_says_before_a_restarted_server_has_read_its_first_table_counts(
    routes: EdgeRoutes, api: Process
) -> None:
    make_deployment(routes.engine, "■■", n=1)
    routes.tell()
    eventually(lambda: live_servers(api, "web") == 2)
    node, everything = Node(api), (("clusters",), ("routes", "rollway"), ("endpoints", "web"))
    for subscription in everything:
        node.take(*subscription)
    api.end(kill=True)
    with ThreadPoolExecutor() as threads:
        with transaction(routes.engine) as connection:
            connection.execute("LOCK TABLE entrances IN ACCESS EXCLUSIVE MODE")
            started = threads.submit(api.start)
            eventually(lambda: _status(f"{api.url}/healthz") == 503)
            held = [threads.submit(node.poll, *subscription) for subscription in everything]
            eventually(lambda: "rollway_polls_held 3.0" in plain_http.get(f"{api.url}/metrics").text)
        started.result()
        eventually(lambda: page(api.url, "/v1/traffic").json()["proxies"][0]["is_current"], 3)
        api.end()
        assert [poll.result() for poll in held] == [None] * 3


def _status(url: str) -> int | None:
    try:
        return plain_http.get(url).status_code
    except httpx.TransportError:
        return None


def test_a_proxy_that_refuses_an_answer_gets_it_again_less_and_less_often(
    shared: tuple[EdgeRoutes, Process], web: Made, node: Node
) -> None:
    node.take("endpoints", web.name)
    shared[0].drain(web.routes[0])
    eventually(lambda: node.poll("endpoints", web.name))
    waits = []
    for _ in range(4):
        began = time.monotonic()
        assert node.poll("endpoints", web.name) is not None
        waits.append(time.monotonic() - began)
    assert all(round(waited, 1) >= least for waited, least in zip(waits, (0.1, 0.2, 0.4, 0.8), strict=True))
    assert "rollway_refused_answers_total 4.0" in plain_http.get(f"{shared[1].url}/metrics").text
    # something else is tried at once
    with ThreadPoolExecutor() as threads:
        held = in_background(threads, node, "endpoints", web.name)
        began = time.monotonic()
        shared[0].drain(web.routes[1])
        assert held.result() is not None
        assert time.monotonic() - began < 10, "a poll that nothing happens to takes 20 s"


def test_a_proxy_that_comes_back_with_what_another_server_told_it_is_told_the_newest(web: Made, node: Node) -> None:
    answer = node.poll("endpoints", web.name, version="told-by-another")
    assert answer is not None
    assert answer["resources"][0]["cluster_name"] == web.name


def test_the_poll_of_a_proxy_that_hangs_up_ends_at_once(
    shared: tuple[EdgeRoutes, Process], web: Made, node: Node
) -> None:
    node.take("endpoints", web.name)

    def held() -> float:
        text = plain_http.get(f"{shared[1].url}/metrics").text
        return float(next(line.split()[1] for line in text.splitlines() if line.startswith("rollway_polls_held ")))

    before = eventually(lambda: held() + 1) - 1
    with pytest.raises(httpx.ReadTimeout):
        node.poll("endpoints", web.name, timeout=0.5)
    eventually(lambda: held() == before, 2)


@pytest.mark.parametrize("body", [b"", b"{", b"{}", b'{"node": {"id": ""}}', b'{"node": {"id": 7}}'])
def test_what_is_no_poll_is_refused(shared: tuple[EdgeRoutes, Process], body: bytes) -> None:
    assert plain_http.post(f"{shared[1].url}/v3/discovery:clusters", content=body).status_code == 422
    assert plain_http.post(f"{shared[1].url}/v3/discovery:listeners", json={"node": {"id": "a"}}).status_code == 422
