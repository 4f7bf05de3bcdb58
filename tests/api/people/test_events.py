"""Event streams: what changes is told at once, to whom it concerns, and nothing is missed by a break."""

import time
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path

import httpx
import pytest
import redis

from db.access_tokens import hash_of, revoke_token
from db.connection.transactions import in_transaction
from domain.installation.tokens import Role
from domain.traffic.entrances import SESSION_COOKIE
from tasks.task_settings import TRAFFIC_CHANNEL
from tests.support.people.event_stream import listening
from tests.support.people.people_api import People, people_process
from tests.support.rows.deployments import make_deployment, write
from tests.support.stack.waiting import eventually


def test_a_change_is_told_at_once_with_who_and_why(people_server: People) -> None:
    make_deployment(people_server.engine, "■■■", name="told")
    with people_server.client(Role.OPERATOR, name="ann") as ann, listening(ann) as stream:
        sizes, waits = cycle(range(4, 10)), list[float]()

        def are_told_at_once() -> bool:
            """A reader that nobody wakes reads 0.6 s after it has read, and that is when the change before was told."""
            began = time.monotonic()
            asked = {"desired_replicas": next(sizes), "reason": "a feast"}
            version = ann.post("/v1/deployments/told/scale", json=asked).json()["version"]
            waits.append(stream.wait("deployment", name="told", version=version).at - began)
            return sum(wait < 0.3 for wait in waits) >= 5

        eventually(are_told_at_once, what="five changes to be told at once")
        noted = stream.wait("history", deployment="told", actor="ann")
        assert "a feast" in noted.data["message"]
        numbers = [(event.data["id"], event.data["attempts"]) for event in stream.of("history")]
        assert len(numbers) == len(set(numbers))


def test_who_is_for_one_deployment_hears_of_no_other(people_server: People) -> None:
    make_deployment(people_server.engine, "■■■", name="loud")
    make_deployment(people_server.engine, "■■■", name="shy")
    with (
        people_server.client(Role.ADMIN) as admin,
        people_server.client(Role.VIEWER, "shy") as shy,
        listening(shy) as limited,
        listening(admin, "/v1/events?deployment=shy") as asked,
        listening(shy, last="forgotten") as again,
    ):
        for name in ("loud", "shy"):
            admin.post(f"/v1/deployments/{name}/scale", json={"desired_replicas": 4})
        for stream in (limited, asked, again):
            stream.wait("history", deployment="shy")
            assert "loud" not in str(stream.heard)
        assert shy.get("/v1/events?deployment=loud").status_code == 403


def test_who_comes_back_hears_what_was_missed_and_nothing_twice(people_server: People) -> None:
    make_deployment(people_server.engine, "■■■", name="missed")
    with people_server.client(Role.OPERATOR) as client:
        with listening(client, "/v1/events?deployment=missed") as stream:
            client.post("/v1/deployments/missed/scale", json={"desired_replicas": 4})
            last = stream.wait("deployment", name="missed", desired_replicas=4).id
        for size in (5, 6):
            client.post("/v1/deployments/missed/scale", json={"desired_replicas": size})
        with listening(client, "/v1/events?deployment=missed") as stream:  # until the server has told it, to nobody yet
            client.post("/v1/deployments/missed/scale", json={"desired_replicas": 7})
            stream.wait("deployment", desired_replicas=7)
        with listening(client, "/v1/events?deployment=missed", last=last) as stream:
            stream.wait("deployment", desired_replicas=7)
            said = [event.data["message"] for event in stream.of("history")]
            assert len(said) == len(set(said)) == 3


def test_after_a_killed_server_what_was_missed_is_told_from_postgres(
    people_server: People, redis_url: str, tmp_path: Path
) -> None:
    server = people_process(people_server.database, redis_url, tmp_path)
    server.start()
    other = People(server, people_server.database)
    make_deployment(people_server.engine, "■■■", name="killed")
    try:
        with other.client(Role.OPERATOR) as client:
            with listening(client) as stream:
                client.post("/v1/deployments/killed/scale", json={"desired_replicas": 4})
                last = stream.wait("deployment", name="killed", desired_replicas=4).id
                server.end(kill=True)
                eventually(lambda: stream.is_over)
            with people_server.client(Role.OPERATOR, name="meanwhile") as elsewhere:
                elsewhere.post("/v1/deployments/killed/scale", json={"desired_replicas": 5})
            server.start()
            with listening(client, last=last) as stream:
                assert stream.wait("history", actor="meanwhile").data["deployment"] == "killed"
                stream.wait("deployment", name="killed", desired_replicas=5)
                client.post("/v1/deployments/killed/scale", json={"desired_replicas": 6})
                stream.wait("deployment", name="killed", desired_replicas=6)
    finally:
        server.end(kill=True)
        other.engine.dispose()


def test_the_streams_of_a_token_that_is_revoked_end(people_server: People) -> None:
    with people_server.client(Role.VIEWER, name="leaves") as client, listening(client) as stream:
        in_transaction(people_server.engine, lambda connection: revoke_token(connection, "leaves", "bob"))
        eventually(lambda: stream.is_over)


def test_the_streams_of_a_session_end_with_it_and_those_of_its_token_go_on(people_server: People) -> None:
    secret = people_server.token(Role.VIEWER)
    shown = {"authorization": f"Bearer {secret}"}
    with people_server.stranger() as page, people_server.stranger() as other, people_server.stranger() as program:
        for browser in (page, other):
            assert browser.post("/login", data={"token": secret}).status_code == 303
        program.headers.update(shown)
        with listening(page) as ends, listening(other) as stays, listening(program) as goes_on:
            this = hash_of(page.cookies[SESSION_COOKIE])
            write(people_server.engine, "DELETE FROM sessions WHERE hash = %s", this)
            eventually(lambda: ends.is_over)
            assert not stays.is_over
            assert not goes_on.is_over


def test_a_server_that_is_asked_to_end_ends_though_somebody_listens(
    people_server: People, redis_url: str, tmp_path: Path
) -> None:
    server = people_process(people_server.database, redis_url, tmp_path)
    server.start()
    other = People(server, people_server.database)
    with other.client(Role.VIEWER) as client, listening(client) as stream:
        with redis.Redis.from_url(redis_url) as notices:
            notices.publish(TRAFFIC_CHANNEL, b"")
        assert server.end() < 3
        eventually(lambda: stream.is_over)
    other.engine.dispose()


@pytest.mark.parametrize("role", [Role.VIEWER, Role.RELEASER])
def test_one_token_cannot_take_the_streams_of_all_others(people_server: People, role: Role) -> None:
    with (
        people_server.client(role, name=f"greedy-{role}") as greedy,
        people_server.client(Role.VIEWER) as other,
        ExitStack() as open_,
    ):
        for _ in range(50):
            open_.enter_context(greedy.stream("GET", "/v1/events"))
        refused = greedy.get("/v1/events")
        assert (refused.status_code, refused.json()["detail"]) == (
            429,
            f"50 streams of the token greedy-{role} are open, which is the most",
        )
        with listening(other):
            pass
        open_.close()
        eventually(lambda: is_open(greedy), what="a place to become free")


def is_open(client: httpx.Client) -> bool:
    with client.stream("GET", "/v1/events") as answer:
        return answer.status_code == 200
