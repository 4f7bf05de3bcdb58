"""From a commit to the acknowledgement of a real Envoy, written down, and what requests see meanwhile."""

import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event

import httpx
import pytest

from db.connection.transactions import in_transaction
from db.proxies.acks import ProxyView, list_proxies
from domain.model.states import DeploymentLifecycleStatus, DeploymentSubStep, Lifecycle
from tests.support.people.asking import page
from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import replicas
from tests.support.stack.waiting import NotInTimeError, eventually

DEPLOYING = DeploymentLifecycleStatus(Lifecycle.DEPLOYING, DeploymentSubStep.PROVISIONING)


@dataclass
class Load:
    """Requests one after the other on a few connections: (begun, ended, who answered or which status)."""

    seen: list[tuple[float, float, str]] = field(default_factory=list)
    over: Event = field(default_factory=Event)

    def send(self, url: str, method: str) -> None:
        with httpx.Client(trust_env=False, verify=False, timeout=20) as client:
            while not self.over.wait(0.002):
                began = time.monotonic()
                answer = client.request(method, url)
                said = answer.json()["replica"] if answer.status_code == 200 else str(answer.status_code)
                self.seen.append((began, time.monotonic(), said))


@contextmanager
def load(url: str) -> Iterator[Load]:
    """Two who read and one who writes."""
    made = Load()
    with ThreadPoolExecutor(3) as threads:
        work = [threads.submit(made.send, url, method) for method in ("GET", "GET", "POST")]
        try:
            yield made
        finally:
            made.over.set()
        for future in work:
            future.result()


def test_drains_are_acknowledged_in_moments_and_who_drained_gets_no_request_any_more(
    envoy_edge: Edge, capsys: pytest.CaptureFixture[str]
) -> None:
    with replicas("stays", "leaves") as (stays, leaves):
        web = envoy_edge.make("■" * 51, stays, *[leaves] * 50)
        url = f"{envoy_edge.envoy.url}/{web.name}/"
        eventually(lambda: plain_http.get(url).status_code == 200)
        took = []
        for route in web.routes[1:]:
            began = time.monotonic()
            envoy_edge.routes.drain(route)
            eventually(lambda route=route: envoy_edge.routes.released(route))  # type: ignore[misc]
            took.append((time.monotonic() - began) * 1000)
        served = leaves.served.total()
        assert {plain_http.get(url).json()["replica"] for _ in range(30)} == {"stays"}
        assert leaves.served.total() == served
        spread = statistics.quantiles(took, n=100)
        with capsys.disabled():
            print(f"\ncommit to acknowledged, 50 drains: p50 {spread[49]:.0f} ms, p99 {spread[98]:.0f} ms")  # noqa: T201
        assert spread[49] < 500


def test_a_promotion_is_one_step_for_every_request(envoy_edge: Edge) -> None:
    with replicas("blue", "green") as (blue, green):
        web = envoy_edge.make("■■|□□", blue, blue, green, green, n=2, status=DEPLOYING)
        url = f"{envoy_edge.envoy.url}/{web.name}/"
        eventually(lambda: plain_http.get(url).status_code == 200)
        with load(url) as sent:
            eventually(lambda: len(sent.seen) > 100)
            promoted = time.monotonic()
            envoy_edge.routes.promote(web.routes[2:], web.routes[:2])
            eventually(lambda: envoy_edge.routes.released(*web.routes[:2]))
            acknowledged = time.monotonic()
            count = len(sent.seen)
            eventually(lambda: len(sent.seen) > count + 100)
        assert {who for _, _, who in sent.seen} == {"blue", "green"}, "no request failed"
        assert {who for began, _, who in sent.seen if began > acknowledged} == {"green"}
        assert {who for _, ended, who in sent.seen if ended < promoted} == {"blue"}


def test_replicas_come_and_go_under_load_without_a_failed_request(envoy_edge: Edge) -> None:
    with replicas("one", "two", "three") as all_three:
        web = envoy_edge.make("■■■", *all_three, n=1)
        url = f"{envoy_edge.envoy.url}/{web.name}/"
        eventually(lambda: plain_http.get(url).status_code == 200)
        with load(url) as sent:
            for route, replica in list(zip(web.routes, all_three, strict=True))[:2]:
                eventually(lambda who=replica.name: any(by == who for _, _, by in sent.seen[-30:]))  # type: ignore[misc]
                envoy_edge.routes.drain(route)
                eventually(lambda route=route: envoy_edge.routes.released(route))  # type: ignore[misc]
                replica.close()
            count = len(sent.seen)
            eventually(lambda: len(sent.seen) > count + 50)
        assert {who for _, _, who in sent.seen} == {"one", "two", "three"}, "no request failed"
        assert {who for _, _, who in sent.seen[-40:]} == {"three"}


def test_the_proxy_is_listed_as_live_with_what_it_knows(envoy_edge: Edge) -> None:
    def known() -> tuple[str, list[ProxyView]]:
        version = page(envoy_edge.api.url, "/v1/traffic").json()["version"]
        return version, in_transaction(envoy_edge.routes.engine, list_proxies)

    def up_to_date() -> list[ProxyView]:
        version, proxies = known()
        return [proxy for proxy in proxies if proxy.acked_version == version]

    try:
        (proxy,) = eventually(up_to_date, what="the proxy to know the table")
    except NotInTimeError as error:
        error.add_note(
            f"{known()}\n{envoy_edge.api.log.read_text()[-3000:]}\n{envoy_edge.envoy.log.read_text()[-3000:]}"
        )
        raise
    assert (proxy.node_id, proxy.kind, proxy.is_live, proxy.drains_waiting) == ("edge-1", "envoy", True, 0)
    # a poll that is held is a sign of life: nothing changes, and it is there all the same
    time.sleep(2)

    def is_fresh() -> bool:
        (proxy,) = in_transaction(envoy_edge.routes.engine, list_proxies)
        return proxy.acked_seconds_ago is not None and max(proxy.seen_seconds_ago, proxy.acked_seconds_ago) < 2

    assert eventually(is_fresh)
