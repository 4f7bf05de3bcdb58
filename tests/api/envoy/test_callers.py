"""What callers of a real Envoy get is counted by a real api process while no rollout is under way."""

from collections.abc import Iterator

import pytest

from db.connection.transactions import in_transaction
from db.fleet_measures import read_fleet
from domain.traffic.request_counts import Requests
from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import Replica, replicas
from tests.support.stack.waiting import eventually


@pytest.fixture
def replica() -> Iterator[Replica]:
    with replicas("one") as (found,):
        yield found


def test_every_request_is_counted_once_and_how_long_it_took(envoy_edge: Edge, replica: Replica) -> None:
    made = envoy_edge.make("■", replica, n=1)
    url = f"{envoy_edge.envoy.url}/{made.name}/"
    eventually(lambda: plain_http.get(url).status_code == 200)

    def counted() -> Requests:
        return in_transaction(envoy_edge.routes.engine, read_fleet).requests.get((made.name, "v1"), Requests())

    def goes_on() -> bool:
        plain_http.get(url)
        return sum(counted().waited) > 0

    eventually(goes_on, what="requests and their waits to be counted")
    before = counted()
    for _ in range(30):
        plain_http.get(url)
    eventually(lambda: counted().count >= before.count + 30, what="each of them to be counted")
    assert counted().failed == 0
