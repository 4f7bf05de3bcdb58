"""Who may send which event: one worker at a time, and of each deployment the first."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.due_work import open_work
from db.outbox import claim_events, forget_given_up, record_delivered, record_failed
from domain.outbox.delivery import Failure, Pending
from tests.support.rows.databases import engine_on
from tests.support.rows.deployments import ask, make_deployment, read, write

LEASE = timedelta(minutes=1)


@pytest.fixture
def other(database: str) -> Iterator[Engine]:
    """Another worker's."""
    made = engine_on(database)
    yield made
    made.dispose()


def claim(engine: Engine, each: int = 10, **under_way: int) -> list[Pending]:
    return in_transaction(engine, lambda connection: claim_events(connection, LEASE, each, under_way))


def shown(pending: list[Pending]) -> list[tuple[str, str, int, int]]:
    return sorted((found.subscription, found.deployment, found.data["version"], found.tries) for found in pending)


@pytest.fixture(autouse=True)
def _six_events(engine: Engine) -> None:
    ask(engine, "set_subscription", subscription="ci", webhook="ci")
    ask(engine, "set_subscription", subscription="pager", celery_task="pager.told", types=["rollway.deployment.scaled"])
    for name in ("api", "web"):
        make_deployment(engine, name=name)
    for name, size in (("api", 4), ("web", 4), ("web", 5)):
        ask(engine, "scale", deployment=name, desired_replicas=size)


def test_of_each_line_the_first_is_claimed_and_once(engine: Engine, other: Engine) -> None:
    assert in_transaction(engine, open_work).has_events
    first = claim(engine)
    heads = [("ci", "api", 2, 1), ("ci", "web", 2, 1), ("pager", "api", 2, 1), ("pager", "web", 2, 1)]
    assert shown(first) == heads
    assert claim(other) == []
    for pending in first:
        in_transaction(engine, lambda connection, pending=pending: record_delivered(connection, pending))  # type: ignore[misc]
    assert shown(claim(other)) == [("ci", "web", 3, 1), ("pager", "web", 3, 1)]
    write(engine, "DELETE FROM outbox")
    assert not in_transaction(engine, open_work).has_events


def test_a_subscription_has_so_many_at_once_less_what_is_under_way_to_it(engine: Engine) -> None:
    assert shown(claim(engine, 1, pager=1)) == [("ci", "api", 2, 1)]
    assert shown(claim(engine, 2, ci=2, pager=1)) == [("pager", "api", 2, 1)]
    assert shown(claim(engine, 1)) == [("ci", "web", 2, 1), ("pager", "web", 2, 1)]


def test_two_that_claim_at_once_get_different_events_and_wait_for_nobody(engine: Engine, other: Engine) -> None:
    with engine.begin() as held:
        connection = held.connection.driver_connection
        mine = claim_events(connection, LEASE, 1)  # type: ignore[arg-type]
        theirs = claim(other, 2)
    assert shown(mine) == [("ci", "api", 2, 1), ("pager", "api", 2, 1)]
    assert shown(theirs) == [("ci", "web", 2, 1), ("pager", "web", 2, 1)]


def test_when_a_lease_has_ended_another_sends_it_and_what_the_first_one_says_counts_no_more(engine: Engine) -> None:
    late = next(found for found in claim(engine) if (found.subscription, found.deployment) == ("ci", "web"))
    write(engine, "UPDATE outbox SET due_at = now() WHERE position = %s", late.position)
    again = claim(engine)
    assert shown(again) == [("ci", "web", 2, 2)]
    assert again[0].id == late.id
    in_transaction(engine, lambda connection: record_delivered(connection, late))
    in_transaction(engine, lambda connection: record_failed(connection, late, Failure("late", None)))
    assert read(engine, "SELECT why, given_up_at FROM outbox WHERE position = %s", late.position) == [
        {"why": None, "given_up_at": None}
    ]


def test_what_was_given_up_is_passed_by_and_forgotten_after_a_while(engine: Engine) -> None:
    web = next(found for found in claim(engine) if (found.subscription, found.deployment) == ("ci", "web"))
    in_transaction(engine, lambda connection: record_failed(connection, web, Failure("gone", None)))
    assert shown(claim(engine)) == [("ci", "web", 3, 1)]
    week = timedelta(days=7)
    assert in_transaction(engine, lambda connection: forget_given_up(connection, week, 10)) == 0
    write(engine, "UPDATE outbox SET given_up_at = given_up_at - interval '8 days' WHERE given_up_at IS NOT NULL")
    assert in_transaction(engine, lambda connection: forget_given_up(connection, week, 10)) == 1
