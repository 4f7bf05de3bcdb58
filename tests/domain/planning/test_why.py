"""Why it waits: the sentence, what is waited for, and what happens when a clock runs out first."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from domain.model.deployment import Deployment, StartFailures
from domain.model.policy import RolloutLimits
from domain.planning.plan_input import WaitContext
from domain.planning.replica_timings import Span, Timings
from domain.planning.wait_explanation import why
from tests.support.pictures.pictures import (
    DESTROYED,
    DESTROYING,
    NOW,
    PENDING,
    READY,
    RECREATE,
    V2,
    blue_green,
    deploying,
    resting,
    rolling_back,
    route_id,
)

GREEN = blue_green(auto_promote=True, promote_delay_seconds=60)
READY_IN_30: dict[str, Any] = {"status_for": 1, "spec": {"min_ready_seconds": 30}}
FAILED = StartFailures(V2, 3, NOW - timedelta(seconds=2))
BACK = "the rollout goes back: the timeout of 1800 s has passed"
NO_PROGRESS = "the rollout goes back: the 60 s allowed without progress has passed"
TOO_LONG = "it is called degraded and tried again later: the 30 minutes that scaling may take has passed"
REPLACED = "scaling begins: 2 replicas, 3 wanted"
NEVER = "no clock ends this wait"
UNTIL_THEN = "no clock of the rollout runs until then"
IN_WAVE = "1 not ready > 0 in this wave, 0 ready < 3 wanted and {} to keep"
DEGRADED: dict[str, Any] = {"degraded_reason": "it failed", "retry_at": NOW + timedelta(seconds=40)}


@pytest.mark.parametrize(
    ("deployment", "waits_for", "blocked_by", "then", "left"),
    [
        (deploying("■■|◇"), "route", IN_WAVE.format("2 serving - 1 < 2"), BACK, 1800),
        (deploying("■■|◇", limits=RolloutLimits(progress_timeout_seconds=60)), "route", None, NO_PROGRESS, 60),
        (
            deploying("■■|■", u=0, **READY_IN_30),
            "route",
            "1 s in health < 30 s, " + IN_WAVE.format("3 serving - 1 < 3"),
            "the next step: creating 1 new (3 live + 1 ≤ 4)",
            29,
        ),
        (
            deploying("■|■■▲", u=0, status_for=10),
            "route",
            "2 ready < 3 wanted, 4 live + 1 > 4 and 3 serving - 1 < 3 to keep",
            "the next step: draining 1 (at least 3 of 3 stay)",
            20,
        ),
        (
            deploying("■■|", 2, 1, 0, start_failures=FAILED),
            "time",
            "2 s after the last failure < 8 s",
            "the next step: creating 1 new (2 live + 1 ≤ 3)",
            6,
        ),
        (deploying("|◇", 1, policy=RECREATE), "route", "0 ready < 1 wanted and 1 live + 1 > 1", BACK, 1800),
        (deploying("~~|", policy=RECREATE), "route", "2 stopping > 0 and 0 ready < 3 wanted", BACK, 1800),
        (
            deploying("■■■|□□□", policy=GREEN, status_for=1),
            "time",
            "1 s in health < 1 min",
            "it completes: promoted: 3 green in, 3 blue out",
            59,
        ),
        (deploying("■■■|□□□", policy=blue_green()), "person", None, UNTIL_THEN, None),
        (deploying("■■|◇", paused_at=NOW), "person", None, UNTIL_THEN, None),
        (deploying("■■■|"), "worker", None, "that look is due", None),
        (rolling_back("■■◇|"), "route", "2 ready < 3 wanted", NEVER, None),
        (rolling_back("■■◇|", **READY_IN_30), "route", "2 ready < 3 wanted", NEVER, None),
        (rolling_back("■■|■", paused_at=NOW), "person", None, UNTIL_THEN, None),
        (resting("■■◇"), "route", "2 ready < 3 wanted", TOO_LONG, 1800),
        (resting("■■▲", status=READY, status_for=10), "route", "2 ready < 3 wanted", REPLACED, 20),
        (resting("■■", status=READY, **DEGRADED), "time", None, REPLACED, 40),
        (resting("■■■", status=READY), "nothing", None, NEVER, None),
        (resting("~~", status=DESTROYING), "route", "2 stopping > 0", NEVER, None),
        (resting("", status=DESTROYED), "nothing", None, "nothing follows", None),
        (resting("", status=PENDING, current_revision_id=None), "person", None, NEVER, None),
    ],
)
def test_each_wait_names_what_it_waits_for_and_what_the_clock_does(
    deployment: Deployment, waits_for: str, blocked_by: str | None, then: str, left: float | None
) -> None:
    told = why(deployment, NOW)
    assert (told.waits_for, told.then, told.left_seconds) == (waits_for, then, left)
    assert blocked_by in (None, told.blocked_by)
    assert (then in told.sentence) is (waits_for != "nothing")  # there is no wait that could end


def test_the_sentence_says_all_of_it() -> None:
    around = WaitContext(
        hosts={route_id(2): "gpu-2"},
        reasons={route_id(2): "nobody listens on its port"},
        timings=Timings(starts=(12.0, 12.0, 18.0, 18.0)),
    )
    told = why(deploying("■■|◇", status_for=8), NOW, around)
    assert told.sentence == (
        "web waits for route 00000003 on host gpu-2, starting for 8 s, usually 15 to 18 s "
        f"(nobody listens on its port), since {IN_WAVE.format('2 serving - 1 < 2')}; "
        "in 30 min the rollout goes back: the timeout of 1800 s has passed"
    )
    assert (told.name, told.usually_seconds) == ("00000003", Span(15.0, 18.0))


def test_a_replica_that_is_healthy_for_too_short_a_time_has_the_time_that_it_needs() -> None:
    told = why(deploying("■■|■", u=0, **READY_IN_30), NOW)
    assert "healthy for 1 s, usually 30 s" in told.sentence
    assert told.usually_seconds == Span(30, 30)


def test_what_a_probe_saw_is_said_of_what_is_not_healthy_and_nothing_where_nothing_is_known() -> None:
    assert "(" not in why(deploying("■■|◇"), NOW).sentence
    healthy = why(deploying("■■|■", u=0, **READY_IN_30), NOW, WaitContext(reasons={route_id(2): "it was slow"}))
    assert "it was slow" not in healthy.sentence


def test_a_sick_replica_is_named_by_its_state_and_has_no_usual_time() -> None:
    taught = WaitContext(timings=Timings(starts=(9.0,), stops=(9.0,)))
    for drawn, state in (("■■△", "degraded"), ("■■▲", "unhealthy")):
        told = why(resting(drawn, status=READY, status_for=10), NOW, taught)
        assert f"waits for route 00000003, {state} for 10 s, since " in told.sentence
        assert told.usually_seconds is None


def test_a_replica_that_stops_has_the_time_of_those_that_stopped() -> None:
    told = why(deploying("~~|", policy=RECREATE), NOW, WaitContext(timings=Timings(stops=(2.0, 4.0))))
    assert told.usually_seconds == Span(3.0, 3.8)


@pytest.mark.parametrize(
    ("around", "waits_for", "name", "said"),
    [
        (WaitContext(hosts={route_id(2): None}), "host", None, "waits for a host that is up, for route 00000003"),
        (
            WaitContext(hosts={route_id(2): None}, without_host={route_id(2): "no host that is up has zone=a"}),
            "host",
            None,
            "for route 00000003, which has none yet: no host that is up has zone=a",
        ),
        (WaitContext(hosts={route_id(2): "b"}, down=frozenset("b")), "host", "b", "waits for host b, which is down"),
        (WaitContext(hosts={route_id(2): "b"}, lacking={"b": "no KEY"}), "secret", "b", "route 00000003: no KEY"),
        (
            WaitContext(hosts={route_id(2): "b"}, down=frozenset("a"), lacking={"a": "x"}),
            "route",
            "00000003",
            "on host b",
        ),
        (WaitContext(hosts={route_id(2): "b"}, lacking={"a": "no KEY"}), "route", "00000003", "on host b"),
    ],
)
def test_a_host_that_is_down_or_lacks_a_secret_is_what_is_waited_for(
    around: WaitContext, waits_for: str, name: str | None, said: str
) -> None:
    told = why(deploying("■■|◇"), NOW, around)
    assert (told.waits_for, told.name) == (waits_for, name)
    assert said in told.sentence


def test_what_stops_needs_no_secret_any_more() -> None:
    around = WaitContext(hosts={route_id(0): "b"}, lacking={"b": "no KEY"})
    assert why(deploying("~|", 1, policy=RECREATE), NOW, around).waits_for == "route"


def test_without_a_worker_that_is_what_is_missing() -> None:
    around = WaitContext(missing_worker="no worker has been heard of", due_at=NOW + timedelta(seconds=5))
    told = why(deploying("■■■|"), NOW, around)
    assert "waits for a worker to look (no worker has been heard of), who finds: creating 1" in told.sentence
    assert told.left_seconds == 5


def test_the_replica_that_has_been_at_it_for_longest_is_named() -> None:
    deployment = deploying("■|◇◇")
    older = replace(deployment.routes[2], status_changed_at=NOW - timedelta(hours=3))
    told = why(replace(deployment, routes=(*deployment.routes[:2], older)), NOW)
    assert told.name == "00000003"


def test_at_rest_it_says_what_was_found_last() -> None:
    told = why(
        resting("■■■", status=READY),
        NOW,
        WaitContext(last_reason="3 of 3 replicas healthy; queue_depth has no value yet"),
    )
    assert told.sentence == "web is not waiting for anything: 3 of 3 replicas healthy; queue_depth has no value yet"


def test_a_route_is_named_as_everywhere_else() -> None:
    deployment = deploying("■■|◇")
    known = replace(deployment.routes[2], id=UUID("019f0000-0000-7000-8000-00009f2c1a3b"))
    assert why(replace(deployment, routes=(*deployment.routes[:2], known)), NOW).name == "9f2c1a3b"
