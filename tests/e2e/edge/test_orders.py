"""A certificate is got, and at most one order more is made, whoever is killed in the middle of an order."""

import ssl

import pytest

from tests.e2e.edge.conftest import Front
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    ("who", "after"), [("worker", "order_url"), ("worker", "token"), ("authority", "token"), ("envoy", "token")]
)
def test_who_is_killed_in_the_middle_of_an_order_costs_at_most_one_more(front: Front, who: str, after: str) -> None:
    front.deploy("web", hosts=["web.example.com"], tls="auto")
    eventually(lambda: front.has(after) or front.has())
    match who:
        case "worker":
            front.fleet.kill("worker1")
            front.start_worker("worker2")
        case "authority":
            front.pebble.process.end(kill=True)
            front.pebble.process.start()
        case _:
            front.envoy.end(kill=True)
            front.envoy.start()

    def is_given() -> bool:
        front.now()
        return front.has()

    eventually(is_given, 120, "a certificate")
    believes = ssl.create_default_context(cadata=front.pebble.root)
    eventually(lambda: front.answers("web.example.com", believes))
    assert front.pebble.orders() <= 2
