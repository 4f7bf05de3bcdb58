"""A file is one release: its size and settings come with its revision, and leave with it."""

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.replicas.host_routes import record_stopped, running_routes
from db.views.fleet_views import reached_at
from domain.model.states import RouteStatus
from domain.steering.rollout_history import AlreadyUndoneError, NoPreviousRevisionError
from domain.text.errors import WrongStateError
from domain.traffic.entrances import EntranceTakenError, TrafficSettings
from domain.traffic.snapshot import RequestRules
from domain.traffic.wire import Wire, replica_wire
from tests.support.pictures.policies import BLUE_GREEN
from tests.support.rows.deployments import Made, ask, become, make_deployment, read, snapshot, write
from tests.support.rows.releases import STRATEGIES, apply, file, go_on, look, settle, snapshot_size, stage_of, table
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet

OF_V1 = {"hosts": ["web.example.com"], "path_prefix": "/web/", "request_timeout_seconds": 30}
OF_V2 = {"hosts": ["new.example.com"], "path_prefix": "/web/", "strip_prefix": False, "request_timeout_seconds": 5}
ONE, BOTH, TWO = ["web.example.com"], ["new.example.com", "web.example.com"], ["new.example.com"]
EVERYTHING = {
    "hosts": ["all.example.com"],
    "strip_prefix": False,
    "request_timeout_seconds": 9,
    "hedge_after_seconds": None,
    "preview": False,
    "idle_timeout_seconds": None,
    "protocol": "http2",
    "tls": {"certificate": "file:/c.pem", "key": "file:/k.pem"},
    "hold_seconds": 20,
    "hold_callers": 5,
    "max_body_bytes": 1000,
    "max_requests_per_second": 100,
    "upstream_tls": True,
    "sticky": {"cookie": "mine"},
    "pages": {"503": "<h1>Soon</h1>"},
}
NULL_IS_LEFT_OUT = (
    *("hosts", "path_prefix", "request_timeout_seconds", "tls", "hold_seconds", "max_body_bytes"),
    *("max_requests_per_second", "upstream_tls", "sticky", "pages"),
)
POLICIES = "SELECT d.name FROM policies p JOIN deployments d ON d.id = p.deployment_id"
SWAPS_AT_ONCE = ("blue_green", "met")


def hosts(engine: Engine) -> list[str]:
    return [entrance.value for entrance in table(engine).entrances if entrance.kind == "host"]


def reached(engine: Engine) -> tuple[object, ...]:
    web = table(engine)
    return web.entrances, web.rules, snapshot_size(engine)


def make(engine: Engine, strategy: str) -> Made:
    made = make_deployment(engine, "■■■", policy=STRATEGIES[strategy])
    ask(engine, "set_traffic", deployment="web", **OF_V1)
    return made


@pytest.mark.parametrize("seed", range(12))
def test_any_file_after_any_other_and_then_the_way_back_leaves_everything_as_it_was(engine: Engine, seed: int) -> None:
    chance = Random(seed)
    made = make_deployment(engine, "■■■", policy=STRATEGIES[chance.choice(list(STRATEGIES))])
    apply(engine, {"deployment": "web", **random_settings(chance)})
    settle(engine, made)
    before = reached(engine)
    new = random_settings(chance)
    wires = {"v1": table(engine).rules.wire, "v3": wire_of(new) or table(engine).rules.wire}
    apply(engine, file("v3", **new))
    for _ in range(chance.randrange(12)):
        look(engine, made)
        assert_spoken_to_as(engine, wires)
    way_back = chance.choice(["abort", "by itself", "undo"])
    if way_back == "abort" and stage_of(engine, made) != "ended":
        ask(engine, "abort", deployment="web")
    if way_back == "by itself":
        write(engine, "UPDATE rollouts SET deadline = clock_timestamp() WHERE outcome IS NULL")
    go_on(engine, made, "ended")
    assert_spoken_to_as(engine, wires)
    if read(engine, "SELECT FROM rollouts WHERE outcome = 'completed'"):
        ask(engine, "undo", deployment="web")
        go_on(engine, made, "ended")
    assert_spoken_to_as(engine, wires)
    assert reached(engine) == before
    assert read(engine, "SELECT FROM entrances WHERE reserved") == []


def assert_spoken_to_as(engine: Engine, wires: Mapping[str, Wire]) -> None:
    """Each replica is asked by proxies, and by probes, as its own revision wants it."""
    web = table(engine)
    for route in web.routes:
        wire = wires[route.revision]
        assert (route.wire, web.wires[route.wire]) == (wire.name, replica_wire("web", wire, None))
    with transaction(engine) as connection:
        probed = {route.revision: route.tls for route in running_routes(connection, "h1")}
    assert probed == {name: replica_wire("web", wires[name], None).tls for name in probed}


def wire_of(settings: Mapping[str, Any]) -> Wire | None:
    return TrafficSettings(**settings["traffic"]).rules.wire if "traffic" in settings else None


def random_settings(chance: Random) -> dict[str, Any]:
    traffic = {
        "hosts": chance.sample(["a.example.com", "b.example.com", "c.example.com"], chance.randrange(1, 3)),
        "path_prefix": chance.choice(["/web/", "/api/v3/", None]),
        "strip_prefix": chance.random() < 0.5,
        "sticky": chance.choice([None, {"cookie": "mine"}, {"header": "x-user"}]),
        "max_body_bytes": chance.choice([None, 1000]),
        "hold_seconds": chance.choice([None, 20]),
        "protocol": chance.choice(["http1", "http2"]),
        "upstream_tls": chance.choice([None, True, {"ca": "file:/ca.pem"}, {"ca": "file:/other.pem"}]),
    }
    if traffic["sticky"] is None:
        traffic["slow_start_seconds"] = chance.choice([None, 30])
    settings = {"replicas": chance.randrange(1, 5), "traffic": traffic}
    return {name: value for name, value in settings.items() if chance.random() < 0.8}


def test_a_size_comes_with_the_revision_and_leaves_with_it(engine: Engine) -> None:
    made = make_deployment(engine, "■■■■", n=4, policy=BLUE_GREEN)
    done = apply(engine, file("v3", replicas=2))
    assert done == ["revision v3 added", "rollout from v1 to v3 started, with 2 replicas"]
    run_until_quiet(coordinator_without_redis(engine))
    serving = [route for route in snapshot(engine, made.id).routes if route.is_serving]
    assert len(serving) == 4
    ask(engine, "abort", deployment="web")
    run_until_quiet(coordinator_without_redis(engine))
    assert snapshot_size(engine) == 4


@pytest.mark.parametrize("section", [None, {}, dict.fromkeys(NULL_IS_LEFT_OUT)], ids=["null", "empty", "nulls"])
def test_a_section_is_said_to_be_as_at_first(engine: Engine, section: dict[str, None] | None) -> None:
    make_deployment(engine, name="other")
    make_deployment(engine)
    before = reached(engine)
    apply(engine, {"deployment": "web", "traffic": EVERYTHING})
    assert reached(engine) != before
    apply(engine, {"deployment": "web", "revision": None, "replicas": None})
    assert reached(engine) != before
    apply(engine, {"deployment": "web", "traffic": section})
    assert (table(engine).rules, hosts(engine)) == (RequestRules(), ["web", "web.localhost"])
    apply(engine, {"deployment": "web", "policy": None})
    assert [row["name"] for row in read(engine, POLICIES)] == ["other"]


def test_a_size_alone_holds_at_once(engine: Engine) -> None:
    make_deployment(engine)
    assert apply(engine, {"deployment": "web", "replicas": 5}) == ["scaled from 3 to 5 replicas"]


def test_a_person_is_told_what_comes_and_when(engine: Engine) -> None:
    made = make(engine, "blue_green")
    apply(engine, file("v3", traffic=OF_V2))
    with transaction(engine) as connection:
        brings = reached_at(connection, made.id).brings
    assert brings == "with the promotion new.example.com, /web/ (passed on), each request within 5 s"


def test_the_same_file_again_in_its_rollout_changes_nothing(engine: Engine) -> None:
    make_deployment(engine)
    release = file("v3", replicas=5, traffic=OF_V2)
    assert apply(engine, release)[1:] == [
        "rollout from v1 to v3 started, with 5 replicas",
        "from the first new replica on reached as new.example.com, /web/ (passed on), each request within 5 s",
    ]
    assert apply(engine, release) == []
    assert apply(engine, {**release, "replicas": 6}) == ["rollout to v3 scaled from 5 to 6 replicas"]
    assert apply(engine, {**release, "replicas": 6, "traffic": OF_V1}) == [
        "from the first new replica on reached as web.example.com, /web/, each request within 30 s"
    ]


def test_a_paused_rollout_gets_another_size_and_stays_paused(engine: Engine) -> None:
    made = make_deployment(engine)
    apply(engine, file("v3", replicas=5))
    ask(engine, "pause", deployment="web")
    apply(engine, file("v3", replicas=6))
    assert snapshot(engine, made.id).paused_at is not None
    ask(engine, "abort", deployment="web")
    assert snapshot_size(engine) == 3


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_settings_hold_from_the_exchange_on_and_the_old_names_go_at_the_end(engine: Engine, strategy: str) -> None:
    made = make(engine, strategy)
    before = reached(engine)
    apply(engine, file("v3", traffic=OF_V2))
    assert reached(engine) == before
    if strategy != "blue_green":  # the promotion is its end
        go_on(engine, made, "met")
        assert (hosts(engine), table(engine).rules.timeout_seconds) == (BOTH, 5)
    go_on(engine, made, "ended")
    assert (hosts(engine), table(engine).rules.timeout_seconds) == (TWO, 5)
    assert apply(engine, file("v3", traffic=OF_V2)) == []


@pytest.mark.parametrize(
    ("strategy", "moment"),
    [
        (strategy, moment)
        for strategy in STRATEGIES
        for moment in ("begun", "met")
        if (strategy, moment) != SWAPS_AT_ONCE
    ],
)
def test_the_way_back_brings_back_what_was(engine: Engine, strategy: str, moment: str) -> None:
    made = make(engine, strategy)
    before = reached(engine)
    apply(engine, file("v3", replicas=2, traffic=OF_V2))
    go_on(engine, made, moment)
    ask(engine, "abort", deployment="web")
    go_on(engine, made, "ended")
    assert reached(engine) == before
    assert read(engine, "SELECT value FROM entrances WHERE reserved") == []


@pytest.mark.parametrize("named", [{}, {"revision": "v1"}])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_undo_of_what_is_over_brings_back_what_was(engine: Engine, strategy: str, named: dict[str, str]) -> None:
    made = make(engine, strategy)
    before = reached(engine)
    apply(engine, file("v3", replicas=2, traffic=OF_V2))
    go_on(engine, made, "ended")
    after = reached(engine)
    assert after != before
    ask(engine, "undo", deployment="web", **named)
    go_on(engine, made, "ended")
    assert reached(engine) == before


def test_a_retry_brings_the_settings_again(engine: Engine) -> None:
    made = make(engine, "rolling_update")
    apply(engine, file("v3", replicas=2, traffic=OF_V2))
    ask(engine, "abort", deployment="web")
    go_on(engine, made, "ended")
    ask(engine, "retry", deployment="web")
    go_on(engine, made, "ended")
    assert (hosts(engine), snapshot_size(engine)) == (TWO, 2)


def test_what_somebody_has_set_since_stays_and_an_undo_says_so(engine: Engine) -> None:
    made = make(engine, "rolling_update")
    apply(engine, file("v3", traffic=OF_V2))
    go_on(engine, made, "ended")
    ask(engine, "set_traffic", deployment="web", hosts=["other.example.com"])
    ask(engine, "scale", deployment="web", desired_replicas=4)
    stays = ["reached as other.example.com, by unknown", "scaled from 3 to 4 replicas, by unknown"]
    assert ask(engine, "undo", deployment="web").result["stays"] == stays
    go_on(engine, made, "ended")
    assert hosts(engine) == ["other.example.com"]
    with pytest.raises(AlreadyUndoneError) as refusal:
        ask(engine, "undo", deployment="web")
    assert "set by itself" not in refusal.value.message, "that was before the last rollout"


def test_an_undo_of_what_a_person_has_set_says_that_it_takes_back_no_settings_and_what_does(engine: Engine) -> None:
    make_deployment(engine)
    ask(engine, "scale", deployment="web", desired_replicas=4)
    expected = "leaves what was set by itself: scaled from 3 to 4 replicas, by unknown. Apply the file of before"
    with pytest.raises(NoPreviousRevisionError, match=expected):
        ask(engine, "undo", deployment="web")


def test_a_rollout_that_is_left_for_another_takes_its_settings_with_it(engine: Engine) -> None:
    made = make(engine, "rolling_update")
    apply(engine, file("v3", replicas=5, traffic=OF_V2))
    go_on(engine, made, "met")
    apply(engine, file("v4"), supersede=True)
    assert (hosts(engine), snapshot_size(engine)) == (ONE, 3)
    go_on(engine, made, "ended")
    assert (hosts(engine), snapshot_size(engine)) == (ONE, 3)


def test_a_name_that_a_rollout_brings_is_nobody_else_s_meanwhile(engine: Engine) -> None:
    make(engine, "rolling_update")
    make_deployment(engine, name="other")
    apply(engine, file("v3", traffic=OF_V2))
    with pytest.raises(EntranceTakenError, match=r"new\.example\.com is web's"):
        ask(engine, "set_traffic", deployment="other", hosts=["new.example.com"])
    ask(engine, "abort", deployment="web")
    run_until_quiet(coordinator_without_redis(engine))
    ask(engine, "set_traffic", deployment="other", hosts=["new.example.com"])


def test_settings_by_hand_are_refused_while_a_rollout_brings_its_own_and_hold_at_once_on_the_way_back(
    engine: Engine,
) -> None:
    made = make(engine, "rolling_update")
    apply(engine, file("v3", traffic=OF_V2))
    go_on(engine, made, "met")
    with pytest.raises(WrongStateError, match="the rollout of web to v3 brings settings of its own"):
        ask(engine, "set_traffic", deployment="web", hosts=["by.example.com"])
    ask(engine, "abort", deployment="web")
    ask(engine, "set_traffic", deployment="web", hosts=["by.example.com"])
    go_on(engine, made, "ended")
    assert hosts(engine) == ["by.example.com"]


def test_a_revision_that_is_only_registered_brings_nothing_yet(engine: Engine) -> None:
    make(engine, "rolling_update")
    before = reached(engine)
    assert apply(engine, file("v3", replicas=9, traffic=OF_V2, activate=False)) == ["revision v3 added"]
    assert reached(engine) == before
    (applied,) = ask(engine, "apply", documents=[file("v3", replicas=9, activate=False)]).result["documents"]
    assert list(applied["notes"]) == ["replicas and traffic come with v3: apply the file when that is to run"]


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 6, 9])
def test_where_rules_set_the_size_that_of_a_file_is_for_a_new_deployment_alone(engine: Engine, replicas: int) -> None:
    make_deployment(engine, "■■■■■", n=5)
    rule = {"metric": "load", "source": "pushed", "comparator": ">", "threshold": 1, "step": 1, "max_replicas": 5}
    ask(engine, "set_autoscaling_rules", deployment="web", rules=[{**rule, "min_replicas": 3}])
    for done in (
        ["revision v3 added", "rollout from v1 to v3 started"],
        [],
    ):  # the same file once more, with nothing new
        (applied,) = ask(engine, "apply", documents=[file("v3", replicas=replicas)]).result["documents"]
        assert applied["done"] == done
        assert list(applied["notes"]) == [f"replicas: {replicas} is for a new deployment; rules set the size, 5 now"]
        assert snapshot_size(engine) == 5
    assert ask(engine, "scale", deployment="web", desired_replicas=4).result["rules"] == ["load > 1: +1 (3 to 5)"]


@pytest.mark.parametrize(
    ("strategy", "before", "brings"),
    [
        ("rolling_update", 6, 4),
        ("rolling_update", 2, 5),
        ("blue_green", 4, 2),
        ("blue_green", 1, 3),
        ("recreate", 3, 1),
        ("canary", 5, 2),
    ],
)
def test_a_revision_that_never_comes_up_leaves_the_size_of_before(
    engine: Engine, strategy: str, before: int, brings: int
) -> None:
    spec = {"max_surge": 1, "max_unavailable": 0} if strategy == "rolling_update" else STRATEGIES[strategy]["spec"]
    policy = {"strategy": strategy, "spec": spec, "limits": {"failure_budget": 1}}
    made = make_deployment(engine, "■" * before, n=before, policy=policy)
    apply(engine, file("v3", replicas=brings, policy=policy))
    for _ in range(20):
        run_until_quiet(coordinator_without_redis(engine))
        if not snapshot(engine, made.id).status.goes_forward:
            break
        if strategy != "recreate":
            assert sum(route.is_serving for route in snapshot(engine, made.id).routes) >= min(before, brings)
        let_starts_fail(engine)
    go_on(engine, made, "ended")
    settle(engine, made)
    assert read(engine, "SELECT outcome FROM rollouts ORDER BY started_at DESC LIMIT 1") == [{"outcome": "rolled_back"}]
    assert [snapshot_size(engine), len(snapshot(engine, made.id).active_routes)] == [before, before]


def let_starts_fail(engine: Engine) -> None:
    """All that start do, without the pause before the next try; what was asked to end is gone."""
    starting = read(engine, "SELECT id FROM routes WHERE status = 'provisioning'")
    become(engine, RouteStatus.FAILED, *(row["id"] for row in starting))
    stopping = read(engine, "SELECT id FROM routes WHERE status IN ('terminating', 'failed') AND stopped_at IS NULL")
    with transaction(engine) as connection:
        record_stopped(connection, [row["id"] for row in stopping])
    write(
        engine, "UPDATE deployments SET last_failed_at = last_failed_at - interval '1 hour', due_at = clock_timestamp()"
    )


@pytest.mark.parametrize(
    ("wanted", "surge", "unavailable", "pacing", "scaled"),
    [
        (6, 2, 2, "continuous", 2),
        (6, 2, 2, "wave", 2),
        (6, 2, 2, "continuous", 1),
        (4, 1, 3, "continuous", 2),
        (5, 0, 5, "continuous", 3),
        (3, 1, 2, "wave", 1),
    ],
)
def test_a_scale_while_new_ones_never_come_up_leaves_somebody_who_serves(
    engine: Engine, wanted: int, surge: int, unavailable: int, pacing: str, scaled: int
) -> None:
    spec = {"max_surge": surge, "max_unavailable": unavailable, "pacing": pacing}
    policy = {"strategy": "rolling_update", "spec": spec}
    made = make_deployment(engine, "■" * wanted, n=wanted, policy=policy)
    apply(engine, file("v3", policy=policy))
    for size in (wanted, scaled):
        ask(engine, "scale", deployment="web", desired_replicas=size)
        run_until_quiet(coordinator_without_redis(engine))
        assert any(route.is_serving for route in snapshot(engine, made.id).routes)
