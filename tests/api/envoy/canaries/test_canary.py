"""A canary's weight: which proxies know it, and what a real Envoy makes of it."""

import re
from collections import Counter
from typing import LiteralString

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.proxies.acks import note_known_weights
from tests.support.pictures.pictures import PROVISIONING
from tests.support.pictures.policies import BASELINE, CANARY, MIRRORING, STICKY
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import replicas
from tests.support.proxies.weights import is_likely, set_weight, weigh
from tests.support.rows.acknowledged import ack, publish, see, seen_now
from tests.support.rows.deployments import Made, make_deployment, read, write
from tests.support.stack.waiting import eventually

ASKED, FEW = 2000, 500
CALLERS = 200
SHARE = 0.2


def note(engine: Engine) -> int:
    return in_transaction(engine, note_known_weights)


@pytest.fixture
def web(engine: Engine) -> Made:
    made = make_deployment(engine, "■|■", n=1, status=PROVISIONING, policy=CANARY)
    weigh(engine, made, 0)
    return made


def test_a_weight_is_known_when_every_live_proxy_has_acknowledged_a_table_with_it(engine: Engine, web: Made) -> None:
    publish(engine)
    see(engine, "a", "b")
    ack(engine, "a", seen_now(engine))
    assert note(engine) == 0
    ack(engine, "b", seen_now(engine))
    write(engine, "UPDATE deployments SET due_at = NULL WHERE id = %s", web.id)
    assert (note(engine), note(engine)) == (1, 0)
    assert read(engine, "SELECT version, due_at <= now() AS due FROM deployments") == [{"version": 2, "due": True}]
    weigh(engine, web, 500)
    assert note(engine) == 0
    for node in ("a", "b"):
        ack(engine, node, seen_now(engine))
    assert note(engine) == 1


def test_without_a_live_proxy_there_is_none_to_wait_for(engine: Engine, web: Made) -> None:
    assert web.rollout_id
    assert note(engine) == 1


def test_requests_are_split_by_weight_and_none_is_lost_while_it_changes(envoy_edge: Edge) -> None:
    with replicas("old", "new") as both:
        made = envoy_edge.make("■|■", *both, name="split", status=PROVISIONING, policy=CANARY)
        eventually(lambda: envoy_edge.ask("/split/").status_code == 200)
        with envoy_edge.asked_all_the_time("/split/") as statuses:
            set_weight(envoy_edge, made, 0)
            assert {envoy_edge.ask("/split/").json()["replica"] for _ in range(50)} == {"old"}
            for weight in (500, 9000, 2000, 0, 2000):
                set_weight(envoy_edge, made, weight)
        assert set(statuses) == {200}
        counted = Counter(envoy_edge.ask("/split/").json()["replica"] for _ in range(ASKED))
        assert is_likely(counted["new"], ASKED, SHARE)


def test_a_baseline_gets_as_many_requests_as_the_canary_is_counted_apart_and_ends_with_it(envoy_edge: Edge) -> None:
    engine = envoy_edge.routes.engine
    with replicas("old", "fresh", "new") as all_three:
        made = envoy_edge.make("■■|■", *all_three, name="beside", status=PROVISIONING, policy=BASELINE)
        write(engine, "UPDATE routes SET created_at = clock_timestamp() WHERE id = %s", made.routes[1])
        envoy_edge.routes.tell()
        eventually(lambda: envoy_edge.ask("/beside/").status_code == 200)
        with envoy_edge.asked_all_the_time("/beside/") as statuses:
            set_weight(envoy_edge, made, 0)
            assert {envoy_edge.ask("/beside/").json()["replica"] for _ in range(50)} == {"old"}
            set_weight(envoy_edge, made, 2000)
            counted = Counter(envoy_edge.ask("/beside/").json()["replica"] for _ in range(FEW))
            eventually(lambda: of_baseline(engine, made) > FEW * SHARE / 2, what="answers of the baseline")
            write(engine, "UPDATE deployments SET sub_step = 'rolling_back' WHERE id = %s", made.id)
            set_weight(envoy_edge, made, 0)
            envoy_edge.routes.drain(made.routes[2])
            eventually(lambda: envoy_edge.routes.released(made.routes[2]))
            assert {envoy_edge.ask("/beside/").json()["replica"] for _ in range(50)} == {"old", "fresh"}
        assert set(statuses) == {200}
    for beside in ("fresh", "new"):
        assert is_likely(counted[beside], FEW, SHARE)


def of_baseline(engine: Engine, made: Made) -> int:
    """What is counted for it is a part of what is counted for the old revision."""
    query = """
        SELECT coalesce(sum(done) FILTER (WHERE revision_id = rollout_id), 0) AS beside,
               coalesce(sum(done) FILTER (WHERE revision_id = %s), 0) AS old
          FROM answers WHERE rollout_id = %s
    """
    (found,) = read(engine, query, made.v1, made.rollout_id)
    assert found["beside"] <= found["old"] * 2 / 3
    return int(found["beside"])


def test_what_leaves_with_a_canary_is_never_asked_in_vain(envoy_edge: Edge) -> None:
    with replicas("old", "new") as both:
        made = envoy_edge.make("■|■", *both, name="leaves", status=PROVISIONING, policy=CANARY)
        eventually(lambda: envoy_edge.ask("/leaves/").status_code == 200)
        for weight in (0, 5000):
            set_weight(envoy_edge, made, weight)
        with envoy_edge.asked_all_the_time("/leaves/") as statuses:
            eventually(lambda: statuses.total() > 50)
            weigh(envoy_edge.routes.engine, made, 0)
            envoy_edge.routes.drain(made.routes[1])
            eventually(lambda: envoy_edge.routes.released(made.routes[1]))
        assert set(statuses) == {200}
        assert {envoy_edge.ask("/leaves/").json()["replica"] for _ in range(20)} == {"old"}


def side(edge: Edge, cookie: str = "", **headers: str) -> tuple[str, str]:
    """Who answers a caller with this cookie, and the cookie that the caller gets; empty for none."""
    answer = edge.ask("/stays/", **({"cookie": cookie} if cookie else {}), **headers)
    return answer.raise_for_status().json()["replica"], answer.headers.get("set-cookie", "")


def test_a_caller_stays_on_one_side_while_the_weight_grows_and_a_cookie_without_a_canary_is_nothing(
    envoy_edge: Edge,
) -> None:
    with replicas("old", "new") as both:
        made = envoy_edge.make("■|■", *both, name="stays", status=PROVISIONING, policy=STICKY)
        eventually(lambda: envoy_edge.ask("/stays/").status_code == 200)
        for weight in (0, 2000):
            set_weight(envoy_edge, made, weight)
        told = [side(envoy_edge) for _ in range(CALLERS)]
        assert all(
            re.fullmatch(
                r"rollway-canary-[0-9a-f]{12}=[0-9a-f-]{36}; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax", given
            )
            for _, given in told
        )
        callers = {given.partition(";")[0]: replica for replica, given in told}
        assert len(callers) == CALLERS
        assert is_likely(Counter(callers.values())["new"], CALLERS, SHARE)
        assert {cookie: side(envoy_edge, f"a=b; {cookie}") for cookie in callers} == {
            cookie: (replica, "") for cookie, replica in callers.items()
        }
        set_weight(envoy_edge, made, 5000)
        grown = {cookie: side(envoy_edge, cookie)[0] for cookie in callers}
        assert {grown[cookie] for cookie, replica in callers.items() if replica == "new"} == {"new"}
        assert is_likely(Counter(grown.values())["new"], CALLERS, 0.5)
        of_its_own = {"x-request-id": "always the same"}
        assert {side(envoy_edge, **of_its_own)[0] for _ in range(50)} == {"old", "new"}, "nobody chooses a side by it"
        set_weight(envoy_edge, made, 0)
        assert {side(envoy_edge, cookie) for cookie in callers} == {("old", "")}


def test_copies_of_what_only_reads_go_to_the_canary_are_counted_apart_and_its_answers_go_to_nobody(
    envoy_edge: Edge,
) -> None:
    engine = envoy_edge.routes.engine

    def told(query: LiteralString) -> dict[str, int]:
        return read(engine, query, made.rollout_id)[0]

    with replicas("old", "new") as (old, new):
        made = envoy_edge.make("■|■", old, new, name="copied", status=PROVISIONING, policy=MIRRORING)
        eventually(lambda: envoy_edge.ask("/copied/").status_code == 200)
        set_weight(envoy_edge, made, 0)
        eventually(lambda: told("SELECT count(*) AS looks FROM proxy_counters WHERE rollout_id = %s")["looks"])
        new.served.clear()  # until then all replicas shared the requests
        new.status = 500
        for method in ("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST"):
            asked = [envoy_edge.ask("/copied/", method) for _ in range(40)]
            assert {(answer.status_code, method == "HEAD" or answer.json()["replica"]) for answer in asked} == {
                (200, method == "HEAD" or "old")
            }
        for header in ({"upgrade": "websocket", "connection": "upgrade"}, {"accept": "text/event-stream"}):
            assert envoy_edge.ask("/copied/", **header).status_code == 200
        eventually(lambda: set(new.served) == {"GET", "HEAD", "OPTIONS"}, what="copies of each")
        assert all(is_likely(new.served[method], 40, 0.5) for method in new.served)
        copies = "SELECT sum(copies) AS n, sum(copies_failed) AS failed FROM intervals WHERE rollout_id = %s"
        all_failed = {"n": new.served.total(), "failed": new.served.total()}
        eventually(lambda: told(copies) == all_failed, what="copies are counted")
        assert told("SELECT sum(failed) AS failed FROM answers WHERE rollout_id = %s") == {"failed": 0}
