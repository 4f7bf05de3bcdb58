"""Requests that come just when nothing serves any more, before the proxy knows all of that."""

import http.client
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event

from tests.api.envoy.front.test_held import DEPLOYING, Held
from tests.support.pictures.policies import RECREATE
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import replicas

CALLERS = 30


def test_trap_who_comes_between_two_messages_to_the_proxy_waits_as_long_as_the_others(envoy_edge: Edge) -> None:
    statuses, over = Counter[int](), Event()
    with replicas("old", "new") as (old, new):
        web = Held(envoy_edge, envoy_edge.make("■|□", old, new, status=DEPLOYING, policy=RECREATE), old, new)
        web.rules(hold_seconds=20)
        envoy_edge.routes.tell()
        envoy_edge.wait_for(web.path)

        def caller() -> None:
            with closing(http.client.HTTPConnection("127.0.0.1", envoy_edge.envoy.port, timeout=40)) as client:
                while not over.wait(0.01):
                    client.request("GET", web.path)
                    answer = client.getresponse()
                    answer.read()
                    statuses[answer.status] += 1

        with ThreadPoolExecutor(CALLERS) as pool:
            callers = [pool.submit(caller) for _ in range(CALLERS)]
            try:
                web.goes()
                time.sleep(4)  # longer than the few tries take that other requests have
                web.comes()
            finally:
                over.set()
            for each in callers:
                each.result()
    assert set(statuses) == {200}
