"""Events on their way to real receivers, from couriers of this process."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest
import structlog
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.views.fleet_settings import all_subscriptions
from tasks.outbox.courier import AT_ONCE, Courier
from tests.support.people.receivers import Event, Receiver, receiving
from tests.support.rows.deployments import ask, make_deployment, read, write
from tests.support.stack.waiting import eventually

Made = Callable[..., Courier]
HOURS = 10_000.0


def no_task(name: str, _document: Mapping[str, Any], _queue: str, _seconds: float) -> None:
    raise AssertionError(f"{name} was sent")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def courier_to(engine: Engine) -> Iterator[Callable[..., Courier]]:
    """A courier that knows these receivers by name."""
    made: list[Courier] = []

    def make(seconds: float = 5, **targets: Receiver) -> Courier:
        known = {name: found.target for name, found in targets.items()}
        made.append(Courier(engine, lambda: known, no_task, lambda _: 0, seconds, threading.Event()))
        return made[-1]

    yield make
    for courier in made:
        courier.stopping.set()
    for courier in made:
        if courier._thread.ident:
            courier._thread.join()


def scale(engine: Engine, name: str, *sizes: int) -> None:
    for size in sizes:
        ask(engine, "scale", deployment=name, desired_replicas=size)


def waiting(engine: Engine, subscription: str = "ci") -> int:
    return len(read(engine, "SELECT 1 FROM outbox WHERE subscription = %s AND given_up_at IS NULL", subscription))


def claimed(engine: Engine, subscription: str) -> int:
    return len(read(engine, "SELECT 1 FROM outbox WHERE subscription = %s AND tries > 0", subscription))


def deliver(engine: Engine, *couriers: Courier, to: str = "ci") -> None:
    """As the alarm does it each second, until nothing waits."""

    def is_done() -> bool:
        for courier in couriers:
            courier.look()
        return waiting(engine, to) == 0

    eventually(is_done, what="all events to be delivered")


def test_events_arrive_in_order_for_each_deployment_however_often_the_receiver_fails(
    engine: Engine, receiver: Receiver, courier_to: Made
) -> None:
    tries: Counter[str] = Counter()

    def fails_at_times(event: Event) -> int:
        tries[event["id"]] += 1
        return 503 if event["data"]["version"] % 3 == 0 and tries[event["id"]] == 1 else 204

    receiver.status = fails_at_times
    ask(engine, "set_subscription", subscription="ci", webhook="ci")
    for name in ("web", "api", "db"):
        make_deployment(engine, name=name)
        scale(engine, name, 4, 5, 6, 7, 8)
    deliver(engine, courier_to(ci=receiver), courier_to(ci=receiver))
    assert [receiver.versions(name) for name in ("web", "api", "db")] == 3 * [[2, 3, 4, 5, 6]]
    assert len(receiver.taken) == 15, "nothing came twice without need"
    assert receiver.forged == 0
    positions = [event["sequence"] for event in receiver.taken if event["subject"] == "web"]
    assert positions == sorted(positions)


def test_an_event_is_what_cloud_events_say(engine: Engine, receiver: Receiver, courier_to: Made) -> None:
    ask(engine, "set_subscription", subscription="ci", webhook="ci")
    made = make_deployment(engine, "■■■")
    ask(engine, "activate_revision", deployment="web", revision="v2", actor="ann", reason="it is new")
    deliver(engine, courier_to(ci=receiver))
    (event,) = receiver.taken
    (rollout,) = read(engine, "SELECT id FROM rollouts")
    (installation,) = read(engine, "SELECT id FROM installation")
    shown = {name: event[name] for name in ("specversion", "type", "source", "subject", "datacontenttype")}
    assert shown == {
        "specversion": "1.0",
        "type": "rollway.rollout.begun",
        "source": f"/rollway/{installation['id']}",
        "subject": "web",
        "datacontenttype": "application/json",
    }
    assert event["data"] == {
        "deployment": "web",
        "deployment_id": str(made.id),
        "version": 2,
        "state": "deploying/provisioning",
        "desired_replicas": 3,
        "revision": "v1",
        "actor": "ann",
        "sentence": "started the rollout to v2 by ann: it is new",
        "route_id": None,
        "rollout": {
            "id": str(rollout["id"]),
            "from_revision": "v1",
            "to_revision": "v2",
            "strategy": "rolling_update",
            "outcome": None,
            "back_reason": None,
        },
    }


def test_a_receiver_that_hangs_delays_nobody_else(engine: Engine, courier_to: Made) -> None:
    with ExitStack() as stack:
        slow, quick = (stack.enter_context(receiving()) for _ in range(2))
        slow.goes_on.clear()
        for name in ("slow", "quick"):
            ask(engine, "set_subscription", subscription=name, webhook=name)
        courier = courier_to(HOURS, slow=slow, quick=quick)
        for numbers in (range(AT_ONCE - 3), range(AT_ONCE - 3, 2 * AT_ONCE)):
            for number in numbers:
                make_deployment(engine, name=f"web-{number}")
                scale(engine, f"web-{number}", 4, 5)
            deliver(engine, courier, to="quick")
        assert claimed(engine, "slow") == AT_ONCE, "as many as may be under way, and all of them still are"
        eventually(lambda: len(slow.asked) == AT_ONCE)
        scale(engine, "web-0", 6)
        deliver(engine, courier, to="quick")
        assert quick.versions("web-0") == [2, 3, 4]
        slow.goes_on.set()
        deliver(engine, courier, to="slow")
        assert slow.versions("web-0") == [2, 3, 4]


def test_what_is_given_up_is_logged_counted_and_passed_by(engine: Engine, receiver: Receiver, courier_to: Made) -> None:
    receiver.status = lambda event: 500 if event["data"]["version"] == 2 else 204
    ask(engine, "set_subscription", subscription="ci", webhook="ci", give_up_after_seconds=60)
    make_deployment(engine)
    scale(engine, "web", 4, 5)
    courier = courier_to(ci=receiver)
    with structlog.testing.capture_logs() as logged:
        courier.look()
        eventually(lambda: read(engine, "SELECT 1 FROM outbox WHERE why = 'ci answered 500'"))
        assert receiver.taken == [], "the next one waits for the first"
        write(engine, "UPDATE outbox SET at = at - interval '1 minute', due_at = now() WHERE why IS NOT NULL")
        deliver(engine, courier)
    assert [(line["log_level"], line["why"]) for line in logged] == [
        ("warning", "ci answered 500"),
        ("error", "ci answered 500"),
    ]
    assert receiver.versions("web") == [3]
    (seen,) = in_transaction(engine, all_subscriptions)
    assert (seen.waiting, seen.given_up, seen.why) == (0, 1, "ci answered 500")


def test_who_answers_that_it_is_gone_is_told_nothing_more_until_it_subscribes_anew(
    engine: Engine, receiver: Receiver, courier_to: Made
) -> None:
    receiver.status = lambda _: 410
    ask(engine, "set_subscription", subscription="ci", webhook="ci")
    make_deployment(engine)
    scale(engine, "web", 4, 5)
    deliver(engine, courier_to(ci=receiver))
    assert len(receiver.asked) == 1, "nor are the events behind it"
    (seen,) = in_transaction(engine, all_subscriptions)
    assert (seen.waiting, seen.given_up, seen.ended_why) == (0, 2, "ci answered 410")
    scale(engine, "web", 6)
    assert waiting(engine) == 0
    receiver.status = lambda _: 204
    ask(engine, "set_subscription", subscription="ci", webhook="ci")
    scale(engine, "web", 7)
    deliver(engine, courier_to(ci=receiver))
    (seen,) = in_transaction(engine, all_subscriptions)
    assert (seen.ended_at, seen.ended_why, len(receiver.taken)) == (None, None, 1)


@pytest.mark.parametrize(
    ("webhook", "why"),
    [("other", "ROLLWAY_WEBHOOKS names no target other here"), ("ci", "ci cannot be reached: nothing listens there")],
)
def test_an_event_waits_where_it_cannot_go_and_no_url_is_told(
    engine: Engine, courier_to: Made, webhook: str, why: str
) -> None:
    with receiving() as gone:
        courier = courier_to(ci=gone)
    ask(engine, "set_subscription", subscription="ci", webhook=webhook)
    make_deployment(engine)
    scale(engine, "web", 4)
    courier.look()
    eventually(lambda: read(engine, "SELECT 1 FROM outbox WHERE why = %s AND due_at > now()", why))
