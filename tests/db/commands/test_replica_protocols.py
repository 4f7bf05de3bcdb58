"""How replicas are spoken to belongs to their revision: it comes and goes with that, by whatever way."""

import pytest
from sqlalchemy import Engine

from db.commands.autoscaling import watched_deployments
from db.connection.transactions import transaction
from domain.traffic.tls import ReplicaTls
from tests.support.rows.deployments import ask, make_deployment, read, write
from tests.support.rows.releases import apply, file, go_on, look, table

HTTP1, HTTP2 = {"protocol": "http1"}, {"protocol": "http2"}
OWN_CA = {"upstream_tls": {"ca": "file:/own.pem"}}


def asked(engine: Engine) -> set[tuple[str, str]]:
    """Who is published, and how it is asked."""
    return {(route.revision, route.wire) for route in table(engine).routes}


def own_wires(engine: Engine) -> dict[str, object]:
    rows = read(engine, "SELECT name, wire FROM revisions WHERE wire IS NOT NULL ORDER BY name")
    return {row["name"]: row["wire"] for row in rows}


def test_a_deployment_that_is_spoken_to_in_one_way_keeps_that_in_one_place(engine: Engine) -> None:
    made = make_deployment(engine)
    ask(engine, "set_traffic", deployment="web", request_timeout_seconds=5)
    apply(engine, file("v3", traffic={"request_timeout_seconds": 6}))
    go_on(engine, made, "ended")
    assert (own_wires(engine), asked(engine)) == ({}, {("v3", "")})


def test_each_side_of_a_rollout_is_asked_in_its_own_way(engine: Engine) -> None:
    made = make_deployment(engine)
    apply(engine, file("v3", traffic=HTTP2))
    go_on(engine, made, "met")
    assert asked(engine) == {("v1", ""), ("v3", "http2")}
    go_on(engine, made, "ended")
    assert (asked(engine), table(engine).rules.protocol) == ({("v3", "http2")}, "http2")


def test_a_later_revision_is_asked_as_the_one_before_unless_its_file_says_otherwise(engine: Engine) -> None:
    made = make_deployment(engine)
    apply(engine, file("v3", traffic=HTTP2))
    go_on(engine, made, "ended")
    apply(engine, file("v4"))
    go_on(engine, made, "ended")
    assert asked(engine) == {("v4", "http2")}
    apply(engine, file("v5", traffic={"request_timeout_seconds": 5}))
    go_on(engine, made, "ended")
    assert asked(engine) == {("v5", "")}, "a section replaces what was there"


@pytest.mark.parametrize("command", ["undo", "activate_revision", "rolling_update"])
def test_an_older_revision_is_asked_as_it_was_whoever_brings_it_back(engine: Engine, command: str) -> None:
    made = make_deployment(engine)
    for name, more in (("v3", {"traffic": HTTP2}), ("v4", {})):
        apply(engine, file(name, **more))
        go_on(engine, made, "ended")
    ask(engine, command, deployment="web", revision="v1")
    go_on(engine, made, "met")
    assert asked(engine) == {("v4", "http2"), ("v1", "")}
    go_on(engine, made, "ended")
    assert (asked(engine), table(engine).rules.protocol) == ({("v1", "")}, "http1")
    ask(engine, "activate_revision", deployment="web", revision="v4")
    go_on(engine, made, "ended")
    assert (asked(engine), table(engine).rules.protocol) == ({("v4", "http2")}, "http2")


def test_a_retry_and_the_same_file_again_ask_it_as_it_was_asked(engine: Engine) -> None:
    made = make_deployment(engine)
    for again in ("retry", "file", "file without its section"):
        apply(engine, file("v3", traffic=HTTP2))
        go_on(engine, made, "met")
        ask(engine, "abort", deployment="web")
        go_on(engine, made, "ended")
        assert asked(engine) == {("v1", "")}
        if again == "retry":
            ask(engine, "retry", deployment="web")
        else:
            apply(engine, file("v3", **({"traffic": HTTP2} if again == "file" else {})))
        go_on(engine, made, "met")
        assert asked(engine) == {("v1", ""), ("v3", "http2")}, again
        ask(engine, "abort", deployment="web")
        go_on(engine, made, "ended")


def test_a_file_may_say_it_anew_of_a_revision_that_did_not_run_well(engine: Engine) -> None:
    made = make_deployment(engine)
    apply(engine, file("v3", traffic=HTTP2))
    ask(engine, "abort", deployment="web")
    go_on(engine, made, "ended")
    apply(engine, file("v3", traffic=HTTP1))
    go_on(engine, made, "met")
    assert asked(engine) == {("v1", ""), ("v3", "")}


def test_what_is_set_by_itself_is_said_of_what_runs_and_of_nothing_before(engine: Engine) -> None:
    made = make_deployment(engine)
    apply(engine, file("v3"))
    go_on(engine, made, "ended")
    ask(engine, "set_traffic", deployment="web", **HTTP2)
    assert asked(engine) == {("v3", "http2")}
    ask(engine, "undo", deployment="web")
    go_on(engine, made, "met")
    assert asked(engine) == {("v3", "http2"), ("v1", "")}


def test_what_is_set_while_both_are_asked_alike_is_said_of_both(engine: Engine) -> None:
    made = make_deployment(engine)
    apply(engine, file("v3"))
    go_on(engine, made, "met")
    ask(engine, "set_traffic", deployment="web", **HTTP2)
    assert asked(engine) == {("v1", "http2"), ("v3", "http2")}


def test_an_undo_goes_back_to_the_same_program_where_that_was_spoken_to_otherwise(engine: Engine) -> None:
    made = make_deployment(engine)
    for name, traffic in (("v3", HTTP1), ("v4", HTTP2)):
        apply(engine, file(name, traffic=traffic))
        go_on(engine, made, "ended")
    assert ask(engine, "undo", deployment="web").result["revision"] == "v3"
    go_on(engine, made, "ended")
    assert asked(engine) == {("v3", "")}


def test_without_a_policy_the_revision_brings_its_own_way(engine: Engine) -> None:
    made = make_deployment(engine)
    apply(engine, file("v3", traffic=HTTP2))
    go_on(engine, made, "ended")
    write(engine, "DELETE FROM policies")
    ask(engine, "activate_revision", deployment="web", revision="v1")
    assert table(engine).rules.protocol == "http1"
    for _ in range(30):
        look(engine, made)
        assert asked(engine) <= {("v3", "http2"), ("v1", "")}
    assert asked(engine) == {("v1", "")}


def test_a_restart_is_asked_as_its_revision_is(engine: Engine) -> None:
    made = make_deployment(engine)
    apply(engine, file("v3", traffic=HTTP2))
    go_on(engine, made, "ended")
    ask(engine, "restart", deployment="web")
    go_on(engine, made, "ended")
    assert asked(engine) == {("v3.r2", "http2")}


def test_each_side_is_believed_by_its_own_authorities(engine: Engine) -> None:
    made = make_deployment(engine)
    apply(engine, {"deployment": "web", "traffic": OWN_CA})
    write(engine, "UPDATE certificates SET chain = name, due_at = now() + interval '1 hour'")
    apply(engine, file("v3", traffic={"upstream_tls": {"ca": "file:/new.pem"}}))
    go_on(engine, made, "met")
    write(engine, "UPDATE certificates SET chain = name")
    web = table(engine)
    known = {route.revision: web.wires[route.wire].tls for route in web.routes}
    believed = {"v1": ReplicaTls("web", "file:/own.pem"), "v3": ReplicaTls("web", "file:/new.pem")}
    assert known == believed
    ask(engine, "abort", deployment="web")
    go_on(engine, made, "ended")
    web = table(engine)
    assert {web.wires[route.wire].tls for route in web.routes} == {believed["v1"]}


def test_who_reads_metrics_of_replicas_asks_as_their_revision_wants_it(engine: Engine) -> None:
    made = make_deployment(engine)
    rule = {"metric": "load", "source": "replicas", "comparator": ">", "threshold": 1, "step": 1, "max_replicas": 9}
    ask(engine, "set_autoscaling_rules", deployment="web", rules=[rule])
    apply(engine, file("v3", traffic={"upstream_tls": True}))
    go_on(engine, made, "ended")
    with transaction(engine) as connection:
        ((watched,), _) = watched_deployments(connection)
    assert watched.tls == ReplicaTls("web", None)
