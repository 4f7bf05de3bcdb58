"""A gRPC service on the whole stack: it is rolled out under calls and a stream, and judged by gRPC's own statuses."""

import json
import queue
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any

import grpc
import pytest

from tests.support.stack.stack import POLICY, ROOT, Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e

SERVICE = "rollway.example.Service"
SPEC = {
    "command": [sys.executable, str(ROOT / "examples" / "grpc_service.py")],
    "health_check": {
        "protocol": "grpc",
        "interval_seconds": 0.5,
        "start_deadline_seconds": 30,
        "failure_threshold": 100,
    },
    "drain_seconds": 60,  # only where the proxy does not tell that nothing is under way
}
JUDGED = {"strategy": "canary", "spec": {"steps": ["30%"], "judge": {"chance_of_false_abort": "1%"}}}
CALLERS, PAUSE_SECONDS, USERS = 3, 0.05, 16
Answered = Counter[tuple[str, grpc.StatusCode]]
"""Calls by the revision that answered and the status that they ended with."""


class Client:
    """Of one deployment, by its host."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._who: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"/{SERVICE}/Who")
        self._count: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(f"/{SERVICE}/Count")

    def who(self) -> str:
        """The revision that answers. Raises grpc.RpcError."""
        return str(self.asked_by("nobody")["revision"])

    def asked_by(self, user: str) -> dict[str, str]:
        """The replica that answers this user, in its words. Raises grpc.RpcError."""
        return dict(json.loads(self._who(b"", timeout=300, metadata=(("x-user", user),))))

    def count(self, requests: Iterator[bytes]) -> Iterator[dict[str, Any]]:
        """The answers of a stream, which ends after the requests. Raises grpc.RpcError."""
        return map(json.loads, self._count(requests))


@contextmanager
def client_of(envoy: str, name: str) -> Iterator[Client]:
    with grpc.insecure_channel(envoy.removeprefix("http://"), [("grpc.default_authority", name)]) as channel:
        client = Client(channel)
        eventually(lambda: revision_of(client) is not None, what="a route")
        yield client


def revision_of(client: Client) -> str | None:
    try:
        return client.who()
    except grpc.RpcError:
        return None


@contextmanager
def calling(call: Callable[[], tuple[str, grpc.StatusCode]]) -> Iterator[Answered]:
    """A few callers, as long as it lasts, and what became of their calls."""
    answered, over = Answered(), Event()

    def caller() -> None:
        while not over.wait(PAUSE_SECONDS):
            answered[call()] += 1

    with ThreadPoolExecutor(CALLERS) as pool:
        callers = [pool.submit(caller) for _ in range(CALLERS)]
        try:
            yield answered
        finally:
            over.set()
        for each in callers:
            each.result()


def ended_well(client: Client) -> tuple[str, grpc.StatusCode]:
    """One call. Raises grpc.RpcError when it fails."""
    return client.who(), grpc.StatusCode.OK


def short_stream(client: Client) -> tuple[str, grpc.StatusCode]:
    """One answer, and the status in the trailers after it."""
    revision = ""
    try:
        for answer in client.count(iter(())):
            revision = answer["revision"]
    except grpc.RpcError as error:
        return revision, error.code()
    return revision, grpc.StatusCode.OK


def deploy(fleet: Fleet, name: str, policy: dict[str, Any]) -> None:
    """A gRPC service with two replicas of v1."""
    fleet.ask("create_deployment", deployment=name, desired_replicas=2, policy=policy)
    fleet.ask("set_traffic", deployment=name, protocol="http2")
    activate(fleet, name, "v1")
    until_all_run(fleet, name, "v1")


def activate(fleet: Fleet, name: str, revision: str, **env: str) -> None:
    fleet.ask("add_revision", deployment=name, name=revision, spec={**SPEC, "env": env})
    fleet.activate(name, revision)


def until_all_run(fleet: Fleet, name: str, revision: str) -> None:
    eventually(
        lambda: fleet.state(name)["lifecycle"] == "ready" and fleet.serving(name) == [revision] * 2,
        60,
        f"{name} to run two of {revision}",
    )


def test_calls_and_a_stream_go_on_while_all_replicas_are_replaced(running_fleet: Fleet, envoy_url: str) -> None:
    fleet, name = running_fleet, "greeter"
    deploy(fleet, name, POLICY)
    says: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    with client_of(envoy_url, name) as client, calling(lambda: ended_well(client)) as answered:
        stream = client.count(iter(says.get, None))
        first = next(stream)
        activate(fleet, name, "v2")
        until_all_run(fleet, name, "v2")
        eventually(lambda: answered["v2", grpc.StatusCode.OK] > 10)
        says.put(None)
        counted = [first, *stream]
    assert [answer["count"] for answer in counted] == list(range(1, len(counted) + 1))
    assert {answer["revision"] for answer in counted} == {"v1"}
    assert answered["v1", grpc.StatusCode.OK] > 0


def test_who_calls_by_one_connection_stays_with_a_replica_by_what_each_call_says(
    running_fleet: Fleet, envoy_url: str
) -> None:
    fleet, name = running_fleet, "kept"
    deploy(fleet, name, {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 0}})
    fleet.ask("set_traffic", deployment=name, protocol="http2", hedge_after_seconds=None, sticky={"header": "x-user"})
    users = [f"user{number}" for number in range(USERS)]
    met: dict[str, list[str]] = {user: [] for user in users}
    with client_of(envoy_url, name) as client:

        def all_call() -> set[str]:
            """The revisions that answered them; a replica that answered is noted where it is another than before."""
            answers = {user: client.asked_by(user) for user in users}
            for user, answer in answers.items():
                if met[user][-1:] != [answer["route"]]:
                    met[user].append(answer["route"])
            return {answer["revision"] for answer in answers.values()}

        eventually(lambda: {client.asked_by(user)["route"] for user in users} == routes(fleet, name))
        eventually(lambda: [client.asked_by(user) for user in users] == [client.asked_by(user) for user in users])
        assert all_call() == {"v1"}
        activate(fleet, name, "v2")
        eventually(lambda: all_call() == {"v2"}, what="everybody is at a new replica")
    assert [len(replicas) for replicas in met.values()] == [2] * USERS
    assert len({tuple(replicas) for replicas in met.values()}) == 2, "whose calls were together are so again"


def routes(fleet: Fleet, name: str) -> set[str]:
    return {str(route["id"]) for route in fleet.routes(name, "healthy")}


def test_what_ends_with_a_status_of_failure_is_counted_against_its_revision(
    running_fleet: Fleet, envoy_url: str
) -> None:
    fleet, name = running_fleet, "judged"
    deploy(fleet, name, JUDGED)
    with client_of(envoy_url, name) as client, calling(lambda: short_stream(client)) as answered:
        activate(fleet, name, "v2", FAIL_EVERY="2")
        eventually(lambda: fleet.rollouts(name)[-1]["outcome"] == "rolled_back", what="the way back")
    assert {called for called in answered if called[1] != grpc.StatusCode.OK} == {("v2", grpc.StatusCode.UNAVAILABLE)}
    history = subprocess.run(
        [sys.executable, "-m", "cli.main", "history", name],
        cwd=ROOT,
        env=fleet.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"failures: canary [\d.]+ % \((\d+) of (\d+)\), control none of \d+", history.stdout)
    assert found, history.stdout
    failed, asked = map(int, found.groups())
    assert abs(2 * failed - asked) <= 2 * CALLERS, "every second, but for what was under way at that moment"
