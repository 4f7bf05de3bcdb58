"""Requests that come while nothing serves wait at a real Envoy, which sends them when a replica is there."""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import pytest
from psycopg.types.json import Jsonb

from domain.model.states import DeploymentLifecycleStatus, DeploymentSubStep, Lifecycle
from domain.traffic.snapshot import RequestRules, stored_together
from tests.support.pictures.policies import RECREATE
from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import Replica, replicas
from tests.support.rows.deployments import Made, write
from tests.support.stack.waiting import eventually
from traffic.envoy import retries

DEPLOYING = DeploymentLifecycleStatus(Lifecycle.DEPLOYING, DeploymentSubStep.PROVISIONING)


@dataclass
class Held:
    """A deployment whose old replica is gone, and whose new one takes requests when `comes` says so."""

    edge: Edge
    made: Made
    old: Replica
    new: Replica

    @property
    def path(self) -> str:
        return f"/{self.made.name}/"

    def rules(self, **rules: object) -> None:
        query = "UPDATE deployments SET rules = %s WHERE id = %s"
        write(self.edge.routes.engine, query, Jsonb(rules), self.made.id)

    def goes(self) -> None:
        """The old one leaves, and drains where requests wait already."""
        self.edge.routes.drain(self.made.routes[0])
        eventually(lambda: self.edge.routes.released(self.made.routes[0]))

    def comes(self) -> None:
        self.edge.routes.promote([self.made.routes[1]], [])

    def waiting(self) -> int:
        """How many wait at present; but for a moment between two of its tries each of them is counted."""
        return self.edge.envoy.stat(f"http.{retries.HELD_LISTENER}.fault.active_faults")

    def is_full(self) -> bool:
        """Whether `hold_callers` wait, so that one more may not."""
        return bool(self.edge.envoy.stat(f"cluster.{self.made.name}.circuit_breakers.high.rq_retry_open"))

    def waits(self, pool: ThreadPoolExecutor, callers: int = 1) -> list[Future[httpx.Response]]:
        """So many callers who wait."""
        asked = [pool.submit(self.edge.ask, self.path) for _ in range(callers)]
        eventually(lambda: self.waiting() == callers)
        return asked


@contextmanager
def held(edge: Edge, hold_seconds: float = 20, **rules: float) -> Iterator[Held]:
    with replicas("old", "new") as (old, new):
        made = edge.make("■|□", old, new, status=DEPLOYING, policy=RECREATE)
        found = Held(edge, made, old, new)
        found.rules(hold_seconds=hold_seconds, **rules)
        edge.routes.tell()
        edge.wait_for(found.path)
        found.goes()
        yield found


def test_who_comes_while_nothing_serves_waits_for_the_next_replica(envoy_edge: Edge) -> None:
    with held(envoy_edge) as web, ThreadPoolExecutor(50) as pool:
        asked = [pool.submit(envoy_edge.ask, web.path, "POST" if number % 5 == 0 else "GET") for number in range(50)]
        time.sleep(1.5)
        assert not any(each.done() for each in asked)
        web.comes()
        answers = [each.result() for each in asked]
        assert Counter(answer.status_code for answer in answers) == {200: 50}
        assert {answer.json()["replica"] for answer in answers} == {"new"}
        assert web.new.served == {"GET": 40, "POST": 10}
        assert not any("x-rollway-held" in answer.headers for answer in answers)


def slowly(size: int) -> Iterator[bytes]:
    for _ in range(4):
        yield bytes(size // 4)
        time.sleep(0.3)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_up_to_a_mebibyte_waits_and_a_larger_one_does_not(envoy_edge: Edge, *, chunked: bool) -> None:
    def sent(size: int) -> httpx.Response:
        content = slowly(size) if chunked else bytes(size)
        return plain_http.post(envoy_edge.envoy.url + web.path, content=content, timeout=30)

    with held(envoy_edge) as web, ThreadPoolExecutor(2) as pool:
        fits = pool.submit(sent, 1_000_000)
        too_large = sent(1_200_000)
        assert (too_large.status_code, too_large.headers["retry-after"]) == (503, "5")
        assert too_large.text == "Rollway: nothing serves this at the moment; ask again.\n"
        assert "x-rollway-held" not in too_large.headers
        eventually(lambda: web.waiting() == 1)
        web.comes()
        answer = fits.result()
        assert (answer.status_code, answer.json()["size"]) == (200, 1_000_000)


def test_one_more_than_may_wait_is_told_so_at_once(envoy_edge: Edge) -> None:
    with held(envoy_edge, hold_callers=3) as web, ThreadPoolExecutor(3) as pool:
        waiting = web.waits(pool, 3)
        began = time.monotonic()
        refused = envoy_edge.ask(web.path)
        assert time.monotonic() - began < 10
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert "x-rollway-held" not in refused.headers
        time.sleep(2 * retries.HELD_ROUND_SECONDS)
        assert not any(each.done() for each in waiting), "who came first continues waiting"
        web.comes()
        assert [each.result().status_code for each in waiting] == [200, 200, 200]


def test_who_hangs_up_gives_the_place_to_another(envoy_edge: Edge) -> None:
    with held(envoy_edge, hold_callers=1) as web, ThreadPoolExecutor(1) as pool:
        with pytest.raises(httpx.ReadTimeout):
            plain_http.get(envoy_edge.envoy.url + web.path, timeout=1)
        eventually(lambda: not web.is_full())
        asked = web.waits(pool)[0]
        time.sleep(2 * retries.HELD_ROUND_SECONDS)
        assert not asked.done()
        web.comes()
        assert asked.result().status_code == 200
        assert web.new.served == {"GET": 1}, "who hung up is not asked for"


def test_what_a_replica_answers_with_503_is_asked_for_once(envoy_edge: Edge) -> None:
    with held(envoy_edge) as web, ThreadPoolExecutor(1) as pool:
        asked = web.waits(pool)[0]
        web.new.status = 503
        web.comes()
        assert asked.result().json()["replica"] == "new"
        assert web.new.served == {"GET": 1}
        envoy_edge.wait_for(web.path, 503)
        before = web.new.served["GET"]
        assert envoy_edge.ask(web.path).status_code == 503
        assert web.new.served["GET"] == before + 1


def test_nobody_waits_longer_than_was_said(envoy_edge: Edge) -> None:
    with held(envoy_edge, hold_seconds=2) as web:
        began = time.monotonic()
        answer = envoy_edge.ask(web.path)
        assert 2 <= time.monotonic() - began < 20
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert "x-rollway-held" not in answer.headers


def test_who_has_waited_in_vain_gets_the_page_of_the_deployment(envoy_edge: Edge) -> None:
    page = '<h1>Back "soon", 100 %</h1>\n'
    with held(envoy_edge, hold_seconds=1) as web:
        web.rules(**stored_together(RequestRules(hold_seconds=1, pages=(("503", page),))))
        envoy_edge.routes.tell()
        answer = eventually(lambda: found if (found := envoy_edge.ask(web.path)).text == page else None)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["content-length"] == str(len(page))
        assert envoy_edge.ask(web.path, "HEAD").content == b""
        grpc = envoy_edge.ask(web.path, "POST", **{"content-type": "application/grpc"})
        assert "soon" not in grpc.headers.get("grpc-message", "") + grpc.text
        too_large = plain_http.post(envoy_edge.envoy.url + web.path, content=bytes(1_200_000), timeout=30)
        assert (too_large.status_code, too_large.text) == (503, page)
        assert not any("x-rollway-held" in each.headers for each in (answer, grpc, too_large))
