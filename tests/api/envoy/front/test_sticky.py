"""Callers who stay with a replica by a real Envoy: through a rollout of ten, and on a side of a canary."""

from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import pytest
from psycopg.types.json import Jsonb

from db.connection.transactions import in_transaction
from db.cycle.applier import give_seats
from domain.model.states import RouteStatus
from tests.support.people.asking import page
from tests.support.pictures.pictures import PROVISIONING
from tests.support.pictures.policies import CANARY
from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import Replica, replicas
from tests.support.proxies.weights import set_weight
from tests.support.rows.deployments import Made, become, mark, read, write
from tests.support.stack.waiting import eventually
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet

N, CALLERS, FEW = 10, 300, 3
MOST = 0.2
"""Of 300 callers a tenth is expected to be with one replica: this is twice that, and five standard deviations off."""
POLICY = {
    "strategy": "rolling_update",
    "spec": {"max_surge": 1, "max_unavailable": 0},
    "limits": {"unanswered": None},  # who leaves is not parked until the first answer of the new ones is counted
}
COOKIE, HEADER = {"cookie": "rollway-replica"}, {"header": "x-user"}
Where = Mapping[int, str]
"""The replica of each caller."""


def stay(edge: Edge, made: Made, sticky: Mapping[str, str | float]) -> None:
    """Have its callers stay, as `set_traffic` does it."""
    query = "UPDATE deployments SET rules = %s WHERE id = %s"
    write(edge.routes.engine, query, Jsonb({"sticky": sticky}), made.id)
    in_transaction(edge.routes.engine, partial(give_seats, ids=[made.id]))
    edge.routes.tell()


@pytest.fixture
def http_client() -> Iterator[httpx.Client]:
    with plain_http.Client(timeout=20) as made:
        yield made


def asked(edge: Edge, made: Made, client: httpx.Client, callers: Mapping[int, Mapping[str, str]]) -> Where:
    url = f"{edge.envoy.url}/{made.name}/"
    return {caller: client.get(url, headers=shown).json()["replica"] for caller, shown in callers.items()}


def come_up(edge: Edge, made: Made, coming: Iterator[Replica]) -> None:
    """New replicas come up, and the proxy knows them."""
    engine = edge.routes.engine
    started = read(engine, "SELECT id FROM routes WHERE status = 'provisioning' AND deployment_id = %s", made.id)
    for row in started:
        become(engine, RouteStatus.HEALTHY, row["id"])
        edge.routes.at(row["id"], next(coming).address)
    edge.routes.tell()

    def are_known() -> bool:
        told = page(edge.api.url, "/v1/traffic")
        all_know = all(proxy["is_current"] for proxy in told.json()["proxies"])
        return all_know and all(str(row["id"]) in told.text for row in started)

    eventually(are_known, what="the proxy knows the new replicas")


def decide(edge: Edge, made: Made) -> None:
    """What is decided reaches the proxy."""
    engine = edge.routes.engine
    mark(engine, made.id)
    run_until_quiet(coordinator_without_redis(engine))
    edge.routes.tell()
    query = "SELECT id FROM routes WHERE status = 'terminating' AND deployment_id = %s"
    eventually(lambda: edge.routes.released(*(row["id"] for row in read(engine, query, made.id))))


def given(edge: Edge, made: Made) -> Mapping[str, str]:
    """The cookie that a caller is given who has none."""
    answer = edge.ask(f"/{made.name}/")
    name, _, rest = answer.headers["set-cookie"].partition("=")
    assert name == "rollway-replica"
    assert rest.endswith("; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax")
    return {"cookie": f"other=1; rollway-replica={rest.partition(';')[0]}", "first": answer.json()["replica"]}


def test_in_a_rollout_of_ten_each_caller_moves_once_and_a_tenth_of_them_at_a_time(
    envoy_edge: Edge, http_client: httpx.Client
) -> None:
    with replicas(*(f"old{number}" for number in range(N))) as old, replicas(*(f"new{n}" for n in range(N))) as new:
        made = envoy_edge.make(f"{'■' * N}|", *old, n=N, status=PROVISIONING, policy=POLICY)
        stay(envoy_edge, made, COOKIE)
        eventually(lambda: "set-cookie" in envoy_edge.ask(f"/{made.name}/").headers, what="callers are given a cookie")
        with ThreadPoolExecutor(8) as pool:
            callers = dict(enumerate(pool.map(lambda _: given(envoy_edge, made), range(CALLERS))))
        before = eventually(lambda: all_stay(envoy_edge, made, http_client, callers))
        new_ones = {caller: given(envoy_edge, made) for caller in range(FEW)}
        first = {caller: shown["first"] for caller, shown in new_ones.items()}
        assert asked(envoy_edge, made, http_client, new_ones) == first, "from the first request on"
        coming, moves = iter(new), Counter[int]()
        shares: list[float] = []
        while read(envoy_edge.routes.engine, "SELECT lifecycle FROM deployments WHERE id = %s", made.id) != READY:
            come_up(envoy_edge, made, coming)
            if len(shares) < FEW:
                assert asked(envoy_edge, made, http_client, callers) == before, "who comes takes nobody from the others"
            decide(envoy_edge, made)
            now = asked(envoy_edge, made, http_client, callers)
            moved = [caller for caller in callers if now[caller] != before[caller]]
            moves.update(moved)
            shares.append(len(moved) / CALLERS)
            before = now
        print("\n".join(f"step {number:2}  {share:6.1%} moved" for number, share in enumerate(shares)))  # noqa: T201
        assert moves == dict.fromkeys(callers, 1)
        assert max(shares) <= MOST
        assert sum(share > 0 for share in shares) == N


READY = [{"lifecycle": "ready"}]


def test_a_caller_stays_with_a_replica_and_so_on_a_side_of_a_canary_whatever_its_weight(
    envoy_edge: Edge, http_client: httpx.Client
) -> None:
    names = ("old0", "old1", "old2", "new0", "new1")
    with replicas(*names) as all_five:
        made = envoy_edge.make("■■■|■■", *all_five, n=3, status=PROVISIONING, policy=CANARY)
        stay(envoy_edge, made, HEADER)
        envoy_edge.wait_for(f"/{made.name}/")
        set_weight(envoy_edge, made, 5000)
        in_transaction(envoy_edge.routes.engine, partial(give_seats, ids=[made.id]))
        envoy_edge.routes.tell()
        callers = {caller: {"x-user": f"user {caller}"} for caller in range(CALLERS)}
        before = eventually(lambda: all_stay(envoy_edge, made, http_client, callers))
        assert set(before.values()) == set(names)
        set_weight(envoy_edge, made, 8000)
        now = asked(envoy_edge, made, http_client, callers)
        went = {caller for caller in callers if now[caller] != before[caller]}
        assert went, "the canary gets more of them"
        assert {(before[caller][:3], now[caller][:3]) for caller in went} == {("old", "new")}
        assert "set-cookie" not in envoy_edge.ask(f"/{made.name}/").headers
        without = Counter(envoy_edge.ask(f"/{made.name}/").json()["replica"] for _ in range(60))
        assert len(without) > 1, "who is not known goes anywhere"


def all_stay(edge: Edge, made: Made, client: httpx.Client, callers: Mapping[int, Mapping[str, str]]) -> Where | None:
    first = asked(edge, made, client, callers)
    return first if asked(edge, made, client, callers) == first else None


def test_who_asks_more_than_a_replica_should_answer_is_answered_by_others_too(
    envoy_edge: Edge, http_client: httpx.Client
) -> None:
    with replicas("a", "b", "c") as known:
        made = envoy_edge.make("■■■", *known, n=3)
        one_user = {caller: {"x-user": "ann"} for caller in range(4 * FEW)}

        def together() -> set[str]:
            with ThreadPoolExecutor(len(one_user)) as pool:
                every = pool.map(
                    lambda caller: asked(envoy_edge, made, http_client, {caller: one_user[caller]}), one_user
                )
                return {replica for found in every for replica in found.values()}

        stay(envoy_edge, made, HEADER)
        envoy_edge.wait_for(f"/{made.name}/")
        eventually(lambda: len(together()) == 1, what="all go to one replica")
        stay(envoy_edge, made, {**HEADER, "max_load": 1.25})
        for replica in known:
            replica.seconds = 0.3
        eventually(lambda: len(together()) > 1, what="what is too much for one goes to others")
        assert (
            len(
                {where for _ in range(FEW) for where in asked(envoy_edge, made, http_client, {0: one_user[0]}).values()}
            )
            == 1
        )
