"""How often, and how much, who may ask: plans are paid at the door, and none is made for who has left."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import psutil
import pytest
from sqlalchemy import Engine

from api.people.auth import Rates, Work
from api.people.problems import TooManyRequestsError
from db.connection.transactions import transaction
from domain.installation.tokens import Role, Token
from tests.support.people.people_api import People, people_process
from tests.support.rows.deployments import make_deployment, read
from tests.support.stack.servers import EmbeddedServer
from tests.support.stack.waiting import eventually


def test_a_bucket_gives_so_many_at_once_and_then_as_many_as_time_brings() -> None:
    rates = Rates(rate=2, burst=4)
    for _ in range(4):
        rates.take("ann")
    with pytest.raises(TooManyRequestsError, match="ann may ask 2 times a second for long; ask again in 1 s"):
        rates.take("ann")
    rates.take("bob")
    time.sleep(0.5)  # what time brings is what is tested
    rates.take("ann")


def test_who_has_spent_more_than_was_left_waits_the_longer() -> None:
    rates = Rates(rate=0.5, burst=4)
    rates.spend("ann", 10)
    with pytest.raises(TooManyRequestsError, match="too long; ask again in 14 s") as refused:
        rates.refuse_spent("ann", "ann thought too long")
    assert refused.value.detail["seconds"] == 14
    rates.refuse_spent("bob", "bob thought too long")


def test_who_is_let_in_has_paid_and_gets_back_what_is_left() -> None:
    ann = Token(name="ann", role=Role.VIEWER, created_by="root", created_at=datetime.now(UTC))
    work = Work(Rates(rate=0.001, burst=4))
    with work.let_in(ann) as bill:
        with pytest.raises(TooManyRequestsError, match="of the token ann is under way, and one at a time is made"):
            work.let_in(ann).__enter__()
        with pytest.raises(TooManyRequestsError, match="are spent"):
            work.rates.refuse_spent("the token ann", "they are spent")
        bill.seconds = 2.5
    work.rates.refuse_spent("the token ann", "1.5 s are left")
    with work.let_in(ann) as bill:
        bill.seconds = 1
    with pytest.raises(TooManyRequestsError, match="the plans of the token ann have taken too much time"):
        work.let_in(ann).__enter__()


def test_a_token_waits_for_silent_hosts_twice_at_once_and_leaves_places_to_others(people_server: People) -> None:
    name = make_deployment(people_server.engine, "■■■", name="silent").name

    def logs(client: httpx.Client) -> int:
        return client.post(f"/v1/deployments/{name}/logs", json={}).status_code

    with (
        people_server.client(Role.OPERATOR) as curious,
        people_server.client(Role.OPERATOR) as other,
        ThreadPoolExecutor(9) as pool,
    ):
        many = [pool.submit(logs, curious) for _ in range(8)]
        eventually(lambda: any(each.done() and each.result() == 429 for each in many), what="one is refused")
        assert pool.submit(logs, other).result() == 200
        assert sorted(each.result() for each in many) == [200] * 2 + [429] * 6


@contextmanager
def locked(engine: Engine, table: str) -> Iterator[None]:
    """Nobody else reads the table until the block ends."""
    with transaction(engine) as connection:
        connection.execute(f"LOCK TABLE {table}")
        connection.execute("SELECT 1").fetchall()
        yield


def test_who_asks_for_logs_too_often_is_refused_before_anything_is_read(people_server: People) -> None:
    name = make_deployment(people_server.engine, "■", name="unread").name
    with people_server.client(Role.OPERATOR) as curious, ThreadPoolExecutor(3) as pool:
        with locked(people_server.engine, "deployments"):
            many = [pool.submit(curious.post, f"/v1/deployments/{name}/logs", json={}) for _ in range(3)]
            eventually(lambda: any(each.done() and each.result().status_code == 429 for each in many), what="a refusal")
        assert sorted(each.result().status_code for each in many) == [200, 200, 429]


def test_who_asks_too_often_is_refused_slowly_and_postgres_is_not_asked(
    module_database: str, redis_server: EmbeddedServer, tmp_path: Path
) -> None:
    small = people_process(module_database, redis_server.url, tmp_path, ROLLWAY_PEOPLE_RATE="0.5")
    small.start()
    slow = People(small, module_database)
    try:
        with slow.client(Role.VIEWER) as often:
            assert [often.get("/v1/signs-of-life").status_code for _ in range(2)] == [200, 200]
            with locked(slow.engine, "tokens"):
                refused = often.get("/v1/signs-of-life")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "2")
        assert refused.elapsed.total_seconds() >= 0.1
    finally:
        small.end(kill=True)
        slow.engine.dispose()


def test_a_token_has_one_plan_at_a_time_and_the_next_is_refused_at_once(people_server: People) -> None:
    make_deployment(people_server.engine, "■", name="single")
    with (
        people_server.client(Role.VIEWER) as curious,
        people_server.client(Role.VIEWER) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        usual = _thought(people_server)
        first = pool.submit(large_plan, curious, "single")
        eventually(lambda: _thought(people_server) > usual + 0.1, what="the first is thought about")
        refused = curious.post("/v1/deployments/single/restart/plan")
        assert (refused.status_code, refused.headers["retry-after"], first.done()) == (429, "1", False)
        assert other.post("/v1/deployments/single/restart/plan").status_code == 200
        assert first.result().status_code == 200
        assert curious.post("/v1/deployments/single/restart/plan").status_code == 200


def test_a_plan_ends_with_who_asked_for_it(people_server: People) -> None:
    """The process that thinks about it is gone long before it would be done, and the next one is answered."""
    make_deployment(people_server.engine, "■", name="left")
    with people_server.client(Role.VIEWER) as curious:
        assert curious.post("/v1/deployments/left/restart/plan").status_code == 200
        before, usual = _thinkers(people_server), _thought(people_server)
        with socket.create_connection((curious.base_url.host, curious.base_url.port)) as caller:
            caller.sendall(as_sent(curious.build_request("POST", "/v1/deployments/left/scale/plan", json=LARGE)))
            eventually(lambda: _thought(people_server) > usual + 0.1, what="it is thought about")
        eventually(lambda: not all(each.is_running() for each in before), what="its process has ended")
        eventually(lambda: curious.post("/v1/deployments/left/restart/plan").status_code == 200)


def _thinkers(people: People) -> list[psutil.Process]:
    assert people.server.process is not None
    server = psutil.Process(people.server.process.pid)
    return [child for child in server.children() if "api.people.plans" in child.cmdline()]


def _thought(people: People) -> float:
    """The seconds of processor time that all of them have taken."""
    return sum(each.cpu_times().user for each in _thinkers(people))


def test_plans_hold_no_transaction(people_server: People) -> None:
    make_deployment(people_server.engine, "■", name="large")
    held = """
        SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND clock_timestamp() - xact_start > interval '3 seconds'
    """
    with ExitStack() as stack, people_server.client(Role.VIEWER) as other:
        curious = [stack.enter_context(people_server.client(Role.VIEWER)) for _ in range(3)]
        with ThreadPoolExecutor(3) as pool:
            asking = [pool.submit(large_plan, each) for each in curious]
            while not all(each.done() for each in asking):
                assert other.get("/v1/deployments/large").status_code == 200
                assert read(people_server.engine, held) == [{"count": 0}]
        assert {each.result().status_code for each in asking} == {200}


def test_a_token_has_so_much_time_for_plans(module_database: str, redis_server: EmbeddedServer, tmp_path: Path) -> None:
    small = people_process(module_database, redis_server.url, tmp_path, ROLLWAY_PEOPLE_RATE="5")
    slow = People(small, module_database)
    make_deployment(slow.engine, "■", name="scarce")
    small.start()
    try:
        with slow.client(Role.VIEWER, name="curious") as curious, slow.client(Role.VIEWER) as other:
            assert large_plan(curious, "scarce").status_code == 200
            refused = large_plan(curious, "scarce")
            assert refused.status_code == 429
            assert "the plans of the token curious have taken too much time; ask again in" in refused.json()["detail"]
            assert int(refused.headers["retry-after"]) > 0
            assert other.post("/v1/deployments/scarce/restart/plan").status_code == 200
    finally:
        small.end(kill=True)
        slow.engine.dispose()


LARGE = {"desired_replicas": 10_000}


def large_plan(client: httpx.Client, name: str = "large") -> httpx.Response:
    return client.post(f"/v1/deployments/{name}/scale/plan", json=LARGE, timeout=280)


def as_sent(request: httpx.Request) -> bytes:
    """The bytes of a request, for a caller who leaves when it likes."""
    head = f"{request.method} {request.url.raw_path.decode()} HTTP/1.1\r\n".encode()
    return head + b"".join(b"%b: %b\r\n" % pair for pair in request.headers.raw) + b"\r\n" + request.read()
