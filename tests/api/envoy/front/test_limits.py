"""More requests than a deployment takes are refused by a real Envoy."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
from psycopg.types.json import Jsonb

from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import replicas
from tests.support.rows.deployments import write
from tests.support.stack.waiting import eventually


def test_one_more_request_in_a_second_gets_429_and_those_of_others_do_not(envoy_edge: Edge) -> None:
    with replicas("here") as (here,), ThreadPoolExecutor(4) as pool:
        web, other = envoy_edge.make("■", here), envoy_edge.make("■", here)
        query = "UPDATE deployments SET rules = %s WHERE id = %s"
        write(envoy_edge.routes.engine, query, Jsonb({"max_requests_per_second": 5}), web.id)
        envoy_edge.routes.tell()

        def asked(name: str) -> list[httpx.Response]:
            return list(pool.map(lambda _: envoy_edge.ask("/", host=name), range(60)))

        eventually(lambda: 429 in {answer.status_code for answer in asked(web.name)}, what="it is limited")
        time.sleep(1.1)  # as much as a second is long, after which a whole one is there to take
        before, began = here.served["GET"], time.monotonic()
        answers = asked(web.name)
        seconds, taken = time.monotonic() - began, here.served["GET"] - before
        statuses = Counter(answer.status_code for answer in answers)
        assert statuses == {200: taken, 429: 60 - taken}
        assert 5 <= taken <= 5 * (2 + seconds)
        assert {answer.headers["retry-after"] for answer in answers if answer.status_code == 429} == {"1"}
        assert {answer.status_code for answer in asked(other.name)} == {200}
        envoy_edge.wait_for("/", host=web.name)
