"""A plain rolling update to a revision that answers nobody, counted by a real Envoy: it goes back, without a judge."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import repeat
from typing import Any

import httpx
import pytest

from db.commands.execute import execute_pending
from db.connection.transactions import in_transaction
from db.proxies.recorded_answers import intervals_of
from tests.support.pictures.pictures import PROVISIONING
from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import Replica, replicas
from tests.support.rows.deployments import Made, read, write
from tests.support.stack.waiting import eventually
from tests.support.workers.coordinators import cycling

MOST_LOST = 64
"""Eight ask after each look: at the limit of 20 the third has seen enough, and some more pass until it is acted on."""
ROLLING = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 0}}


@contextmanager
def updating(edge: Edge, spoil: Callable[[Replica], None]) -> Iterator[tuple[Made, Replica, Replica]]:
    """One replica of each revision, the new one spoilt before its first request; one more never comes up."""
    with replicas("old", "new") as (old, new):
        spoil(new)
        made = edge.make("■|■◇", old, new, "127.0.0.1:9", n=2, status=PROVISIONING, policy=ROLLING)
        unhedged = "UPDATE deployments SET hedge_after_seconds = NULL WHERE id = %s"
        write(edge.routes.engine, unhedged, made.id)  # or the old one answers what the new one was sent
        edge.routes.tell()
        eventually(lambda: ask(edge, made) == 200)
        with cycling(edge.routes.engine):
            yield made, old, new


def ask(edge: Edge, made: Made, patience: float = 1.0) -> int | None:
    """The status; None after so many seconds without an answer."""
    with suppress(httpx.ReadTimeout):
        return plain_http.get(f"{edge.envoy.url}/{made.name}/", timeout=patience).status_code
    return None


def fails(replica: Replica) -> None:
    replica.status = 500


def hangs(replica: Replica) -> None:
    replica.seconds, replica.hangs_up = 60.0, True


def told(edge: Edge, made: Made) -> dict[str, Any]:
    query = "SELECT back_reason, unanswered, in_use FROM rollouts WHERE id = %s"
    (row,) = read(edge.routes.engine, query, made.rollout_id)
    return row


@pytest.mark.parametrize("spoil", [fails, hangs])
def test_a_rolling_update_to_what_answers_nobody_goes_back(envoy_edge: Edge, spoil: Callable[[Replica], None]) -> None:
    with updating(envoy_edge, spoil) as (made, _, _), ThreadPoolExecutor(8) as callers:

        def is_back() -> bool:
            list(callers.map(ask, repeat(envoy_edge, 8), repeat(made)))
            return bool(told(envoy_edge, made)["back_reason"])

        eventually(is_back)
        row = told(envoy_edge, made)
        assert row["unanswered"] >= 20
        assert re.fullmatch(r"the new revision answered none of \d+ requests", row["back_reason"])


def test_one_that_answers_anybody_is_not_sent_back_by_what_it_left_before(envoy_edge: Edge) -> None:
    with updating(envoy_edge, lambda _: None) as (made, _, _):

        def has_answered() -> bool:
            ask(envoy_edge, made)
            return told(envoy_edge, made)["unanswered"] is None

        eventually(has_answered)
        assert told(envoy_edge, made)["back_reason"] is None


def test_who_leaves_both_at_once_turns_no_rollout_back(envoy_edge: Edge) -> None:
    with updating(envoy_edge, hangs) as (made, old, new), ThreadPoolExecutor(8) as callers:
        old.seconds = new.seconds = 0.5
        old.hangs_up = True  # nobody is there any more when they would answer

        def asked_long_enough() -> bool:
            list(callers.map(ask, repeat(envoy_edge, 8), repeat(made), repeat(0.1)))
            return new.served["GET"] >= 40

        eventually(asked_long_enough)
        row = told(envoy_edge, made)
        assert (row["back_reason"], row["unanswered"]) == (None, 0)


RECREATE = {"strategy": "recreate", "spec": {}}


@pytest.mark.parametrize("spoil", [fails, hangs])
@pytest.mark.parametrize("policy", [ROLLING, RECREATE], ids=["rolling", "recreate"])
def test_a_rollout_that_was_done_before_anybody_asked_is_undone(
    envoy_edge: Edge, spoil: Callable[[Replica], None], policy: dict[str, Any]
) -> None:
    with replicas("old", "new") as (old, new):
        spoil(new)
        picture = "■|■" if policy is ROLLING else "|■"
        made = envoy_edge.make(
            picture, *([old, new] if policy is ROLLING else [new]), n=1, status=PROVISIONING, policy=policy
        )
        engine = envoy_edge.routes.engine
        write(engine, "UPDATE deployments SET hedge_after_seconds = NULL WHERE id = %s", made.id)
        with cycling(engine), ThreadPoolExecutor(8) as callers:
            eventually(lambda: told(envoy_edge, made) and outcome(envoy_edge, made) == "completed")
            envoy_edge.routes.tell()

            def is_undone() -> bool:
                list(callers.map(ask, repeat(envoy_edge, 8), repeat(made)))
                execute_pending(engine)
                return bool(undoes(envoy_edge, made))

            eventually(is_undone)
    (row,) = undoes(envoy_edge, made)
    assert re.fullmatch(r"the new revision answered none of \d+ requests", row["reason"])
    assert (row["actor"], row["to_revision_id"]) == ("rollway", made.v1)


BY_HAND = {"strategy": "blue_green", "spec": {}}
BY_ITSELF = {"strategy": "blue_green", "spec": {"auto_promote": True, "scale_down_delay_seconds": 300}}


@pytest.mark.parametrize("spoil", [fails, hangs])
@pytest.mark.parametrize("policy", [BY_HAND, BY_ITSELF], ids=["by hand", "by itself"])
def test_a_blue_green_that_answers_nobody_is_back_with_the_blue_that_was_parked(
    envoy_edge: Edge, spoil: Callable[[Replica], None], policy: dict[str, Any]
) -> None:
    with replicas("old", "new") as (old, new):
        made = envoy_edge.make("■|□", old, new, n=1, status=PROVISIONING, policy=policy)
        engine, lost = envoy_edge.routes.engine, 0
        write(engine, "UPDATE deployments SET hedge_after_seconds = NULL WHERE id = %s", made.id)
        envoy_edge.routes.tell()
        spoil(new)
        with cycling(engine), ThreadPoolExecutor(8) as callers:
            if policy is BY_HAND:
                eventually(lambda: ask(envoy_edge, made) == 200 and told(envoy_edge, made)["in_use"])
                write(engine, "UPDATE rollouts SET promote_requested = true WHERE id = %s", made.rollout_id)
                write(engine, "UPDATE deployments SET due_at = clock_timestamp() WHERE id = %s", made.id)
            eventually(lambda: outcome(envoy_edge, made) == "completed")
            envoy_edge.routes.tell()

            def is_back() -> bool:
                nonlocal lost
                before = looks(envoy_edge, made)
                lost += sum(found != 200 for found in callers.map(ask, repeat(envoy_edge, 8), repeat(made)))
                eventually(lambda: looks(envoy_edge, made) > before or undoes(envoy_edge, made))
                execute_pending(engine)
                envoy_edge.routes.tell()
                return any(undo["outcome"] == "completed" for undo in undoes(envoy_edge, made))

            eventually(is_back)
            eventually(lambda: ask(envoy_edge, made) == 200)
    (undo,) = undoes(envoy_edge, made)
    assert (undo["actor"], undo["to_revision_id"], undo["starts"]) == ("rollway", made.v1, 0)
    assert 20 <= lost <= MOST_LOST


def test_an_undo_in_an_outage_of_both_stays(envoy_edge: Edge) -> None:
    with replicas("old", "new") as (old, new):
        fails(old)
        fails(new)
        made = envoy_edge.make("■|■", old, new, n=1, status=PROVISIONING, policy=ROLLING)
        engine = envoy_edge.routes.engine
        write(engine, "UPDATE rollouts SET is_undo = true WHERE id = %s", made.rollout_id)
        with cycling(engine), ThreadPoolExecutor(8) as callers:

            def is_asked_on() -> bool:
                list(callers.map(ask, repeat(envoy_edge, 8), repeat(made)))
                execute_pending(engine)
                return outcome(envoy_edge, made) == "completed" and new.served["GET"] >= 60

            eventually(is_asked_on)
        assert told(envoy_edge, made)["back_reason"] is None
        assert len(undoes(envoy_edge, made)) == 1, "itself alone"


def looks(edge: Edge, made: Made) -> int:
    """How often the server has written down what the proxies counted."""
    assert made.rollout_id is not None
    return len(in_transaction(edge.routes.engine, partial(intervals_of, rollout_id=made.rollout_id)))


def outcome(edge: Edge, made: Made) -> str | None:
    (row,) = read(edge.routes.engine, "SELECT outcome FROM rollouts WHERE id = %s", made.rollout_id)
    return str(row["outcome"])


def undoes(edge: Edge, made: Made) -> list[dict[str, Any]]:
    query = """
        SELECT actor, reason, to_revision_id, outcome,
               (SELECT count(*)::int FROM routes r WHERE r.rollout_id = o.id) AS starts
          FROM rollouts o WHERE deployment_id = %s AND is_undo
    """
    return read(edge.routes.engine, query, made.id)
