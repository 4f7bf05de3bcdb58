"""What callers got, as rows: by the minute for an hour, and as sums with few names."""

from functools import partial
from uuid import UUID

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.fleet_measures import FleetView, read_fleet
from db.proxies.proxy_reports import add_requests
from db.views.caller_views import CallersView, callers_of, losing
from domain.traffic.request_counts import NOBODY, OTHERS, WAITED_MS, Came, Requests
from tests.support.rows.deployments import make_deployment, read, write

FAST = (4, *(0 for _ in WAITED_MS))


def add(engine: Engine, came: Came, *named: str) -> None:
    in_transaction(engine, partial(add_requests, came=came, names=named))


def shown(engine: Engine, deployment: UUID) -> CallersView:
    return in_transaction(engine, partial(callers_of, deployment_id=deployment))


def fleet(engine: Engine) -> FleetView:
    return in_transaction(engine, read_fleet)


def test_what_came_is_shown_by_revision_and_the_one_that_nobody_answered_too(engine: Engine) -> None:
    made = make_deployment(engine, "■", n=1)
    came = {
        (made.name, made.v1): Requests(6, 0, 1, 3, FAST),
        (made.name, NOBODY): Requests(failed=2),
        ("gone", made.v1): Requests(9),
    }
    add(engine, came, made.name, "gone")
    add(engine, came, made.name, "gone")
    view = shown(engine, made.id)
    of = {each.revision: each for each in view.now}
    assert set(of) == {"v1", ""}
    assert of["v1"].failed_per_second / of["v1"].per_second == pytest.approx(0.3)
    assert (of["v1"].half_ms, of["v1"].most_ms, of[""].half_ms) == (5, 5, None)
    assert [(minute.per_second > 0, minute.half_ms) for minute in view.minutes].count((True, 5)) in (1, 2)
    assert len(view.minutes) == 60
    assert fleet(engine).requests == {
        (made.name, "v1"): Requests(12, 0, 2, 6, tuple(2 * count for count in FAST)),
        (made.name, ""): Requests(failed=4),
    }
    (worst,) = in_transaction(engine, partial(losing, names=None))
    assert (worst.deployment, worst.revisions) == (made.name, ["", "v1"])
    assert worst.failed_per_second / worst.per_second == pytest.approx(10 / 24)
    assert in_transaction(engine, partial(losing, names=["another"])) == []


def test_those_without_a_name_are_one_sum_that_never_falls(engine: Engine) -> None:
    web, mail = make_deployment(engine, "■", n=1), make_deployment(engine, "■", name="mail", n=1)
    came = {(web.name, web.v1): Requests(2), (mail.name, mail.v1): Requests(3)}
    add(engine, came, web.name)
    add(engine, came, mail.name)
    assert fleet(engine).requests == {
        (web.name, "v1"): Requests(2),
        (mail.name, "v1"): Requests(3),
        (OTHERS, ""): Requests(5),
    }


def test_an_hour_is_kept(engine: Engine) -> None:
    made = make_deployment(engine, "■", n=1)
    add(engine, {(made.name, made.v1): Requests(1)}, made.name)
    write(engine, "UPDATE requests SET minute = minute - interval '61 minutes'")
    add(engine, {(made.name, made.v1): Requests(1)}, made.name)
    assert len(read(engine, "SELECT FROM requests")) == 2
    assert shown(engine, made.id).minutes[0].per_second == 0
    write(engine, "UPDATE requests SET minute = minute - interval '2 minutes' WHERE minute < now() - interval '1 hour'")
    write(engine, "UPDATE request_sums SET at = at - interval '61 minutes'")
    add(engine, {}, made.name)
    assert len(read(engine, "SELECT FROM requests")) == 1
    assert read(engine, "SELECT FROM request_sums") == []
