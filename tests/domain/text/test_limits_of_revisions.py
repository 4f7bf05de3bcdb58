"""Revisions and rules that people write: of each field the last value that is taken and the first that is refused."""

from typing import Any

import pytest

from domain.text.errors import InvalidInputError
from tests.support.workers.payloads import ask, check, docker, expect_a_limit, external, labels, rule, secrets, variable


def spec(**given: Any) -> dict[str, Any]:
    return {"spec": {"command": ["serve"], **given}}


def prepare(**given: Any) -> dict[str, Any]:
    return spec(prepare={"command": "fetch", **given})


def warm(**given: Any) -> dict[str, Any]:
    return {"path": "/", **given}


def warm_up(**given: Any) -> dict[str, Any]:
    return spec(warm_up={"requests": [warm()], **given})


def park(**given: Any) -> dict[str, Any]:
    return spec(park={"sleep": {"path": "/sleep"}, "wake": {"path": "/wake"}, **given})


@pytest.mark.parametrize(
    ("taken", "refused"),
    [
        (check(path="/"), check(path="up")),
        (check(interval_seconds=0.1), check(interval_seconds=0.09)),
        (check(interval_seconds=3600), check(interval_seconds=3600.1)),
        (check(timeout_seconds=0.001), check(timeout_seconds=0)),
        (check(timeout_seconds=300), check(timeout_seconds=300.1)),
        (check(success_threshold=1), check(success_threshold=0)),
        (check(success_threshold=100), check(success_threshold=101)),
        (check(failure_threshold=1), check(failure_threshold=0)),
        (check(failure_threshold=100), check(failure_threshold=101)),
        (check(initial_delay_seconds=0), check(initial_delay_seconds=-0.1)),
        (check(initial_delay_seconds=9, start_deadline_seconds=9.1), check(initial_delay_seconds=60)),
        (check(initial_delay_seconds=86_399.9, start_deadline_seconds=86_400), check(initial_delay_seconds=86_401)),
        (check(protocol="grpc", service="n" * 127), check(protocol="grpc", service="n" * 128)),
        (check(start_deadline_seconds=0.001), check(start_deadline_seconds=0)),
        (check(start_deadline_seconds=86_400), check(start_deadline_seconds=86_400.1)),
        ({"spec": {"command": ["s"], "drain_seconds": 0}}, {"spec": {"command": ["s"], "drain_seconds": -0.1}}),
        ({"spec": {"command": ["s"], "drain_seconds": 86_400}}, {"spec": {"command": ["s"], "drain_seconds": 86_401}}),
        ({"spec": {"command": ["s"], "stop_grace_seconds": 0}}, {"spec": {"command": ["s"], "stop_grace_seconds": -1}}),
        (
            {"spec": {"command": ["s"], "stop_grace_seconds": 86_400}},
            {"spec": {"command": ["s"], "stop_grace_seconds": 86_401}},
        ),
        ({"spec": {"command": ["s", ""]}}, {"spec": {"command": [""]}}),
        (spec(drain_max_seconds=0), spec(drain_max_seconds=-0.1)),
        (spec(drain_max_seconds=86_400), spec(drain_max_seconds=86_401)),
        (spec(release_seconds=0), spec(release_seconds=-0.1)),
        (spec(release_seconds=3600), spec(release_seconds=3600.1)),
        (spec(drain="fixed"), spec(drain="never")),
        (spec(user="_a" + "b" * 30), spec(user="_a" + "b" * 31)),
        (spec(user="ann"), spec(user="Ann")),
        (spec(hosts={f"l{n}": "a" for n in range(16)}), spec(hosts={f"l{n}": "a" for n in range(17)})),
        (spec(hosts={"z": "a" * 63}), spec(hosts={"z": "a" * 64})),
        (spec(spread="zone"), spec(spread="a zone")),
        (check(host="h" * 260), check(host="h" * 261)),
        (check(host="shop:65535"), check(host="shop:655350")),
        (prepare(timeout_seconds=0.001), prepare(timeout_seconds=0)),
        (prepare(timeout_seconds=86_400), prepare(timeout_seconds=86_400.1)),
        (warm_up(requests=[warm()] * 20), warm_up(requests=[warm()] * 21)),
        (warm_up(at_most_seconds=2.1), warm_up(at_most_seconds=2)),
        (warm_up(at_most_seconds=86_400), warm_up(at_most_seconds=86_400.1)),
        (
            warm_up(at_most_seconds=5, requests=[warm(), warm(under_seconds=4.9)]),
            warm_up(at_most_seconds=5, requests=[warm(), warm(under_seconds=5)]),
        ),
        (warm_up(requests=[warm(path="/" + "p" * 1999)]), warm_up(requests=[warm(path="/" + "p" * 2000)])),
        (warm_up(requests=[warm(times=1)]), warm_up(requests=[warm(times=0)])),
        (warm_up(requests=[warm(times=100)]), warm_up(requests=[warm(times=101)])),
        (warm_up(requests=[warm(under_seconds=0.001)]), warm_up(requests=[warm(under_seconds=0)])),
        (
            warm_up(at_most_seconds=4000, requests=[warm(under_seconds=3600)]),
            warm_up(at_most_seconds=4000, requests=[warm(under_seconds=3600.1)]),
        ),
        (warm_up(requests=[warm(headers=labels(32))]), warm_up(requests=[warm(headers=labels(33))])),
        (
            warm_up(requests=[warm(method="PUT", body="ü" * 32_767 + "x")]),
            warm_up(requests=[warm(method="PUT", body="ü" * 32_768)]),
        ),
        (warm_up(requests=[warm(method="PATCH", body="")]), warm_up(requests=[warm(method="DELETE", body="")])),
        (park(awake_within_seconds=0.001), park(awake_within_seconds=0)),
        (park(awake_within_seconds=86_400), park(awake_within_seconds=86_400.1)),
        (park(sleep={"path": "/" + "p" * 1999}), park(sleep={"path": "/" + "p" * 2000})),
        (park(sleep={"path": "/", "method": "PUT"}), park(sleep={"path": "/", "method": "PATCH"})),
        (park(sleep={"path": "/a?b=c"}), park(sleep={"path": "a"})),
        (docker(resources={"pids": 16}), docker(resources={"pids": 15})),
        (docker(resources={"pids": 4_194_304}), docker(resources={"pids": 4_194_305})),
        (docker(cache_volumes={"c" * 63: "/c"}), docker(cache_volumes={"c" * 64: "/c"})),
        (docker(cache_volumes={"c": "/" + "c" * 999}), docker(cache_volumes={"c": "/" + "c" * 1000})),
        (docker(network="host"), docker(network="host", port=8080)),
        (external(task="routes2"), external(task="routes")),
        (external(task="lifecycles"), external(task="lifecycle")),
        (external(task="t", queue="command"), external(task="t", queue="commands")),
        (external(task="rollways.stop"), external(task="rollway.stop")),
        (external(task="t", queue="hosts.a"), external(task="t", queue="host.a")),
        (secrets(100), secrets(101)),
        (variable("A"), variable("")),
        (variable("a.B-c d"), variable("A=B")),
        (variable("ü"), variable("A\x1b")),
        (variable("A"), variable("\ud800")),
        (docker(image="i" * 500), docker(image="i" * 501)),
        (docker(port=1), docker(port=0)),
        (docker(port=65_535), docker(port=65_536)),
        (docker(network="n"), docker(network="")),
        (docker(labels={"rollways": "x"}), docker(labels={"fine": "", "rollway.": "x"})),
        (docker(volumes={"cache": "/c"}), docker(volumes={"": "/c"})),
        (docker(volumes={"/a": "/c"}), docker(volumes={"/a:ro": "/c"})),
        (docker(volumes={"a.b": "/c"}), docker(volumes={".a": "/c"})),
        (docker(volumes={"a": "/c"}), docker(volumes={"a": "/c:ro"})),
        (docker(volumes={"a": "/c", "b": "/d"}), docker(volumes={"a": "/c", "b": "d"})),
        (docker(resources={"memory": 6 * 2**20}), docker(resources={"memory": 6 * 2**20 - 1})),
        (docker(resources={"memory": 2**50}), docker(resources={"memory": 2**50 + 1})),
        (docker(resources={"memory": "1048576g"}), docker(resources={"memory": "9" * 5000 + "g"})),
        (docker(resources={"memory": "6m"}), docker(resources={"memory": "6143k"})),
        (docker(resources={"memory": "6291456b"}), docker(resources={"memory": "6291455b"})),
        (docker(resources={"memory": " 6291456 "}), docker(resources={"memory": "6 m"})),
        (docker(resources={"memory": "1G"}), docker(resources={"memory": "1t"})),
        (docker(resources={"cpus": 0.01}), docker(resources={"cpus": 0.009})),
        (docker(resources={"cpus": 1024}), docker(resources={"cpus": 1024.1})),
        (docker(resources={"gpus": 1}), docker(resources={"gpus": 0})),
        (docker(resources={"gpus": 64}), docker(resources={"gpus": 65})),
        (docker(resources={"gpus": "all"}), docker(resources={"gpus": "some"})),
        (external(webhook="http://a/"), external(webhook="http://a/ b")),
        (external(webhook="https://a:1"), external(webhook="https://a:0")),
        (external(webhook="http://" + "a" * 1993), external(webhook="http://" + "a" * 1994)),
        (external(task="t" * 200), external(task="t" * 201)),
        (external(task="t"), external(task="a task")),
        (external(task="t", queue="q" * 200), external(task="t", queue="q" * 201)),
        (external(task="t", queue="q"), external(task="t", queue="a queue")),
    ],
)
def test_the_limits_of_a_revision(taken: dict[str, Any], refused: dict[str, Any]) -> None:
    expect_a_limit("add_revision", taken, refused)


@pytest.mark.parametrize(
    ("taken", "refused"),
    [
        (rule(path="/" + "p" * 199), rule(path="/" + "p" * 200)),
        (rule(labels=labels(10)), rule(labels=labels(11))),
        (rule(labels={"a": "b" * 200}), rule(labels={"a": "b" * 201})),
        (rule(labels={"a" * 200: "b"}), rule(labels={"a" * 201: "b"})),
        (rule(step=10_000), rule(step=10_001)),
        (rule(step=-10_000), rule(step=-10_001)),
        (rule(min_replicas=0), rule(min_replicas=-1)),
        (rule(min_replicas=1), rule(min_replicas="1")),
        (rule(max_replicas=5), rule(max_replicas=5.0)),
        (rule(step=1), rule(step="1")),
        (rule(threshold=1), rule(threshold="1")),
        (rule(min_replicas=5, max_replicas=5), rule(min_replicas=6, max_replicas=5)),
        (rule(max_replicas=10_000), rule(max_replicas=10_001)),
        (rule(min_replicas=0, max_replicas=0), rule(min_replicas=0, max_replicas=-1)),
        (rule(cooldown_seconds=0), rule(cooldown_seconds=-0.1)),
        (rule(cooldown_seconds=86_400), rule(cooldown_seconds=86_400.1)),
        (rule(max_age_seconds=0.001), rule(max_age_seconds=0)),
        (rule(max_age_seconds=86_400), rule(max_age_seconds=86_400.1)),
        (rule(source="pushed"), rule(source="pushed", path="/m")),
    ],
)
def test_the_limits_of_an_autoscaling_rule(taken: dict[str, Any], refused: dict[str, Any]) -> None:
    expect_a_limit("set_autoscaling_rules", taken, refused)


@pytest.mark.parametrize(
    ("field", "value"),
    [("start_deadline_seconds", 0), ("initial_delay_seconds", 86_400.1), ("initial_delay_seconds", -0.1)],
)
def test_a_time_that_cannot_be_is_refused_at_its_own_field(field: str, value: float) -> None:
    with pytest.raises(InvalidInputError) as refused:
        ask("add_revision", **check(**{field: value}))
    assert refused.value.detail == {"field": f"spec.health_check.{field}"}
