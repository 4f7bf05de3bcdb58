"""Faults that alerts are for, made with real parts while nobody works. Each yields labels of its alert."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import LiteralString

from db.connection.transactions import in_transaction
from db.proxies.proxy_reports import add_requests
from db.replicas.heartbeats import show_sign_of_life
from domain.traffic.request_counts import NOBODY, Requests
from tasks.task_settings import KEY_PREFIX
from tests.support.faults.watched import Watched
from tests.support.pictures.pictures import PROVISIONING
from tests.support.proxies import plain_http
from tests.support.proxies.streaming import Node
from tests.support.rows.deployments import make_deployment, write
from tests.support.stack.waiting import eventually
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet


@contextmanager
def rows(watched: Watched, picture: str, broken: LiteralString, mended: LiteralString, n: int = 3) -> Iterator[str]:
    """A deployment that is drawn and then broken by a statement, while nobody works; yields its name."""
    watched.rest()
    name = f"web{next(watched.numbers)}"
    make_deployment(watched.fleet.engine, picture, name=name, n=n, status=PROVISIONING)
    write(watched.fleet.engine, "UPDATE deployments SET due_at = NULL WHERE name = %s", name)
    write(watched.fleet.engine, broken, name)
    yield name
    write(watched.fleet.engine, mended, name)


OF_IT: LiteralString = "WHERE deployment_id = (SELECT id FROM deployments WHERE name = %s)"


@contextmanager
def a_clock_goes_wrong(watched: Watched) -> Iterator[Mapping[str, str]]:
    show = partial(show_sign_of_life, host="late", address="10.0.0.9")
    in_transaction(watched.fleet.engine, partial(show, clock_offset=-7.0))
    yield {"host": "late"}
    in_transaction(watched.fleet.engine, partial(show, clock_offset=0.0))


@contextmanager
def a_server_has_no_redis(watched: Watched) -> Iterator[Mapping[str, str]]:
    watched.cut_off.start()
    began, labels = time.monotonic(), {"instance": watched.target("cut-off")}
    eventually(lambda: watched.has_fired("RollwayRedisAway", labels, began))
    try:
        yield labels
    finally:
        watched.cut_off.end(kill=True)


@contextmanager
def a_certificate_was_not_renewed(watched: Watched) -> Iterator[Mapping[str, str]]:
    make_deployment(watched.fleet.engine, "", name="secured", n=0)
    write(
        watched.fleet.engine,
        """
        INSERT INTO certificates (deployment_id, kind, name, chain, not_after, fault)
        SELECT id, 'acme', 'www.example.com', 'PEM', now() + interval '13 days', 'the authority cannot be reached'
          FROM deployments WHERE name = 'secured'
        """,
    )
    yield {"deployment": "secured"}
    write(watched.fleet.engine, "DELETE FROM certificates")


@contextmanager
def postgres_falls_silent(watched: Watched) -> Iterator[Mapping[str, str]]:
    watched.wire.is_forwarding.clear()
    yield {"instance": watched.target("cut-off")}
    watched.wire.is_forwarding.set()


@contextmanager
def nobody_looks(watched: Watched) -> Iterator[Mapping[str, str]]:
    due: LiteralString = "UPDATE deployments SET due_at = now() - interval '1 hour' WHERE name = %s"
    with rows(watched, "■■■|◇", due, "UPDATE deployments SET due_at = NULL WHERE name = %s"):
        yield {}


@contextmanager
def nobody_reads_a_queue(watched: Watched) -> Iterator[Mapping[str, str]]:
    in_transaction(watched.fleet.engine, partial(show_sign_of_life, host="deaf", address="10.0.0.7"))
    with watched.client as client:
        client.lpush(f"{KEY_PREFIX}host.deaf", *[b"{}"] * 100)
        yield {"queue_name": "host.deaf"}
        client.delete(f"{KEY_PREFIX}host.deaf")


@contextmanager
def too_few_serve(watched: Watched) -> Iterator[Mapping[str, str]]:
    ill: LiteralString = "UPDATE routes SET status = 'unhealthy' " + OF_IT
    with rows(watched, "■■■|", ill, "UPDATE routes SET status = 'healthy' " + OF_IT) as name:
        yield {"deployment": name}


@contextmanager
def none_serves(watched: Watched) -> Iterator[Mapping[str, str]]:
    ill: LiteralString = "UPDATE routes SET status = 'unhealthy', healthy_at = created_at " + OF_IT
    with rows(watched, "■■■|", ill, "UPDATE routes SET status = 'healthy' " + OF_IT) as name:
        yield {"deployment": name}


@contextmanager
def requests_fail(watched: Watched) -> Iterator[Mapping[str, str]]:
    name = f"web{next(watched.numbers)}"
    make_deployment(watched.fleet.engine, "■", name=name, n=1)
    for failed in (0, 1000):
        came = {(name, NOBODY): Requests(fine=1000, failed=failed)}
        in_transaction(watched.fleet.engine, partial(add_requests, came=came, names=[name]))
        watched.sees(f'rollway_requests_total{{deployment="{name}", class="failed"}} == {failed}')
    yield {"deployment": name}


@contextmanager
def scaling_gives_up(watched: Watched) -> Iterator[Mapping[str, str]]:
    bad: LiteralString = "UPDATE deployments SET degraded_reason = 'it dies', retry_at = now() WHERE name = %s"
    good: LiteralString = "UPDATE deployments SET degraded_reason = NULL, retry_at = NULL WHERE name = %s"
    with rows(watched, "■■■|", bad, good) as name:
        yield {"deployment": name}


@contextmanager
def a_rollout_goes_back(watched: Watched) -> Iterator[Mapping[str, str]]:
    with rows(watched, "■■■|", "SELECT %s", "SELECT %s") as name:
        watched.fleet.ask("abort", wake=False, deployment=name)
        run_until_quiet(coordinator_without_redis(watched.fleet.engine))
        yield {"strategy": "rolling_update"}


@contextmanager
def a_rollout_stands_still(watched: Watched) -> Iterator[Mapping[str, str]]:
    still: LiteralString = "UPDATE rollouts SET last_progress_at = now() - interval '1 hour' " + OF_IT
    with rows(watched, "■■■|◇", still, "UPDATE rollouts SET last_progress_at = now() " + OF_IT) as name:
        yield {"deployment": name}


@contextmanager
def somebody_pauses_and_forgets(watched: Watched) -> Iterator[Mapping[str, str]]:
    with rows(watched, "■■■|◇", "SELECT %s", "SELECT %s") as name:
        watched.fleet.ask("pause", wake=False, deployment=name)
        yield {}
        watched.fleet.ask("resume", wake=False, deployment=name)
        run_until_quiet(coordinator_without_redis(watched.fleet.engine))


@contextmanager
def a_replica_does_not_leave(watched: Watched) -> Iterator[Mapping[str, str]]:
    gone: LiteralString = "UPDATE routes SET status = 'terminated', stopped_at = now() " + OF_IT
    gone += " AND status = 'terminating'"
    with rows(watched, "■■■~|", "SELECT %s", gone):
        yield {}


@contextmanager
def nobody_takes_an_event(watched: Watched) -> Iterator[Mapping[str, str]]:
    write(watched.fleet.engine, SUBSCRIPTION)
    watched.sees('rollway_events{subscription="pager"}')
    write(watched.fleet.engine, GIVEN_UP)
    yield {"subscription": "pager"}
    write(watched.fleet.engine, "DELETE FROM subscriptions")


SUBSCRIPTION: LiteralString = """
    INSERT INTO subscriptions (name, webhook, give_up_after_seconds, actor) VALUES ('pager', 'PAGER', 60, 'test')
"""
GIVEN_UP: LiteralString = """
    INSERT INTO outbox (subscription, deployment_id, id, type, deployment, at, data, why, given_up_at)
    VALUES ('pager', uuidv7(), uuidv7(), 'rollout.ended', 'web', now(), '{}', 'it answered 500', now())
"""


@contextmanager
def somebody_tries_tokens(watched: Watched) -> Iterator[Mapping[str, str]]:
    with plain_http.Client(base_url=watched.people.url) as client:
        for number in range(100):
            client.get("/v1/deployments", headers={"authorization": f"Bearer {number}"})
    yield {"instance": watched.target("people")}


@contextmanager
def a_proxy_refuses(watched: Watched) -> Iterator[Mapping[str, str]]:
    watched.refuse(Node(watched.api))
    yield {"instance": watched.target("api")}
