"""A judged canary while proxies and their servers are killed: the judge sees what the replicas saw, once."""

import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import httpx

from db.connection.transactions import in_transaction
from db.judge_evidence import evidence_of
from domain.model.canary import NOTHING_SEEN
from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge, api_process
from tests.support.rows.deployments import read, write
from tests.support.stack.server_process import running
from tests.support.stack.waiting import eventually
from tests.support.workers.coordinators import cycling
from tests.support.worlds.rolling import Rolling, rolling, served

AT_LEAST = 100
"""Requests of the canary before it may go on: more than a test has sent when it kills something."""


def judged(at_least: int) -> dict[str, Any]:
    judge = {"at_least": {"requests": at_least, "seconds": 0}, "errors": {"allowed": "40%"}}
    return {"strategy": "canary", "spec": {"steps": ["50%"], "judge": judge}}


@contextmanager
def judging(edge: Edge, at_least: int) -> Iterator[Rolling]:
    """A canary that has its weight, which every proxy knows, and a coordinator that continues."""
    with rolling(edge, policy=judged(at_least)) as this:
        unhedged = "UPDATE deployments SET hedge_after_seconds = NULL WHERE id = %s"
        write(edge.routes.engine, unhedged, this.made.id)  # or a slow machine asks a replica for another's answer too
        write(edge.routes.engine, "UPDATE rollouts SET weight = 0 WHERE id = %s", this.made.rollout_id)
        edge.routes.tell()
        with cycling(edge.routes.engine):
            eventually(lambda: is_judged(this))
            yield this


def rollout(this: Rolling) -> dict[str, Any]:
    query = "SELECT weight, weight_known_at IS NOT NULL AS known, outcome FROM rollouts WHERE id = %s"
    (row,) = read(this.edge.routes.engine, query, this.made.rollout_id)
    return row


def is_judged(this: Rolling) -> bool:
    return bool(rollout(this)["weight"] == 5000 and rollout(this)["known"])


def ended(this: Rolling, outcome: str) -> bool:
    """Whether it has ended so, after ten more requests."""
    this.ask(10)
    return bool(rollout(this)["outcome"] == outcome)


def all_is_counted(this: Rolling, before: tuple[int, int], came: Any) -> None:
    """What the replicas have served since then, and no more of it a second later."""
    served_since = served(this)[0] - before[0], served(this)[1] - before[1]
    assert min(served_since) > 0, "both were asked"
    eventually(lambda: tuple(answers.done for answers in came()) == served_since)
    this.looked_at()
    assert tuple(answers.done for answers in came()) == served_since


def test_of_two_servers_one_is_killed_and_the_judge_has_every_answer_once_and_lets_the_canary_go_on(
    envoy_edge: Edge, redis_url: str, module_database: str, tmp_path: Path
) -> None:
    with judging(envoy_edge, AT_LEAST) as this, running(api_process(module_database, redis_url, tmp_path)):
        came, before = this.came(), served(this)
        this.ask(30)
        envoy_edge.api.end(kill=True)
        try:
            this.ask(30)
            all_is_counted(this, before, came)
            assert rollout(this)["outcome"] is None
        finally:
            envoy_edge.api.start()  # an Envoy that nobody tells is counted for 10 s: a slow machine asks too little
        eventually(lambda: ended(this, "completed"))


def test_a_canary_that_fails_after_its_proxy_and_its_server_began_anew_is_taken_back(envoy_edge: Edge) -> None:
    with judging(envoy_edge, 10_000) as this:
        came, before = this.came(), served(this)
        this.ask(40)
        this.looked_at()
        envoy_edge.envoy.end(kill=True)
        envoy_edge.api.end(kill=True)
        envoy_edge.api.start()  # first: an Envoy alone waits for it for half a minute
        envoy_edge.envoy.start()
        eventually(lambda: this.ask()[0].status_code == 200)
        this.ask(40)
        all_is_counted(this, before, came)
        assert rollout(this)["outcome"] is None
        this.new.status = 500
        eventually(lambda: ended(this, "rolled_back"))
        assert came()[0].failed == 0
        assert 0 < came()[1].failed <= came()[1].done


def test_its_server_is_killed_with_requests_under_way_and_the_judge_has_every_answer_once(envoy_edge: Edge) -> None:
    with judging(envoy_edge, 10_000) as this:
        this.old.seconds = this.new.seconds = 0.1  # so that some are under way whenever it is killed
        came, before = this.came(), served(this)
        with envoy_edge.asked_all_the_time(f"/{this.made.name}/") as statuses:
            answered_further(statuses)
            envoy_edge.api.end(kill=True)
            answered_further(statuses)
            envoy_edge.api.start()
            answered_further(statuses)
        assert set(statuses) == {200}
        all_is_counted(this, before, came)


def answered_further(statuses: Counter[int]) -> None:
    so_far = statuses.total()
    eventually(lambda: statuses.total() > so_far + 10)


def test_what_is_under_way_to_each_side_is_known_whenever_it_was_sent(envoy_edge: Edge) -> None:
    """Of a proxy that began anew, only what it has under way itself."""
    with judging(envoy_edge, 10_000) as this, ThreadPoolExecutor(40) as callers:

        def sends(count: int) -> list[Future[None]]:
            before = served(this)
            sent = [callers.submit(_asked, this) for _ in range(count)]
            eventually(lambda: sum(served(this)) >= sum(before) + count)
            canary = served(this)[1] - before[1]
            eventually(lambda: under_way(this) == (canary, count - canary))
            return sent

        this.old.seconds = this.new.seconds = 6.0
        wait(sends(20))
        eventually(lambda: under_way(this) == (0, 0))
        lost = sends(20)
        envoy_edge.envoy.end(kill=True)
        envoy_edge.envoy.start()
        wait(lost)
        eventually(lambda: under_way(this) == (0, 0))
        wait(sends(20))


def _asked(this: Rolling) -> None:
    with suppress(httpx.HTTPError):
        this.ask()


def under_way(this: Rolling) -> tuple[int, int]:
    """To the canary and to the old revision, at the last look."""
    assert this.made.rollout_id is not None
    found = in_transaction(this.edge.routes.engine, partial(evidence_of, rollouts=[this.made.rollout_id]))
    return found.get(this.made.rollout_id, NOTHING_SEEN).exposure.under_way


def test_a_canary_that_refuses_what_the_old_one_answers_is_taken_back(envoy_edge: Edge) -> None:
    with judging(envoy_edge, AT_LEAST) as this:
        this.new.status = 404
        eventually(lambda: ended(this, "rolled_back"))


def test_a_canary_that_answers_nobody_is_aborted_by_those_who_leave(envoy_edge: Edge) -> None:
    with judging(envoy_edge, AT_LEAST) as this, ThreadPoolExecutor(20) as callers:
        this.new.seconds, this.new.hangs_up = 30.0, True

        def give_up(_: int) -> None:
            with suppress(httpx.ReadTimeout):
                plain_http.get(f"{envoy_edge.envoy.url}/{this.made.name}/", timeout=2)

        def is_aborted() -> bool:
            list(callers.map(give_up, range(20)))
            return bool(rollout(this)["outcome"] == "rolled_back")

        eventually(is_aborted)


def test_a_canary_of_which_some_answers_never_come_goes_back_though_nobody_leaves(envoy_edge: Edge) -> None:
    """Posts, which are not sent again: every third of the canary's takes twenty seconds, and nobody leaves."""
    with judging(envoy_edge, 10_000) as this, ThreadPoolExecutor(400) as callers:
        url, over = f"{envoy_edge.envoy.url}/{this.made.name}/", Event()
        this.new.spoils_every, this.new.spoils_seconds = 3, 20.0

        def ask() -> None:
            with suppress(httpx.HTTPError):
                plain_http.post(url, timeout=60)

        def asks() -> None:
            while not over.wait(0.05):
                callers.submit(ask)

        with ThreadPoolExecutor(1) as pool:
            pool.submit(asks)
            try:
                eventually(lambda: rollout(this)["outcome"] == "rolled_back", 90)
            finally:
                over.set()
                this.new.hangs_up = True
        (row,) = read(envoy_edge.routes.engine, "SELECT back_reason FROM rollouts WHERE id = %s", this.made.rollout_id)
        assert re.match(r"failures: canary at least \d+ waited for longer than [\d,]+ ms", row["back_reason"])
