"""Hosts are asked for the logs of their replicas, through a real Redis."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID, uuid4

import pytest
import redis

from runtime.process.process_logs import LogPiece
from tasks.hosts.host_rpc import LOGS, MOST_BYTES, HostAnswers, LogAnswers, LogQuestion, answer_for_host, read_logs
from tests.support.stack.waiting import eventually

SOON = 0.3


@pytest.fixture
def redis_client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as made:
        yield made


@contextmanager
def answering(client: redis.Redis, host: str, home: Path) -> Iterator[None]:
    until = threading.Event()
    thread = answer_for_host(HostAnswers(client, host, {LOGS: LogAnswers(home)}), until)
    try:
        yield
    finally:
        until.set()
        thread.join(10)


def printed(home: Path, text: str, route: UUID | None = None) -> UUID:
    """The replica that has printed it."""
    route = route or uuid4()
    path = home / "logs" / "replicas" / f"{route}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as log:
        log.write(text)
    return route


def test_each_host_answers_for_its_replicas_and_is_read_on_from_where_it_was(
    redis_client: redis.Redis, tmp_path: Path
) -> None:
    east, west = tmp_path / "east", tmp_path / "west"
    here, there = printed(east, "one\ntwo\n"), printed(west, "three\n")
    with answering(redis_client, "east", east), answering(redis_client, "west", west):
        told = read_logs(redis_client, {"east": {here: None, uuid4(): None}, "west": {there: None}}, 1)
        assert told == {"east": {here: LogPiece("two\n", 8)}, "west": {there: LogPiece("three\n", 6)}}
        printed(east, "four\nhalf", here)
        assert read_logs(redis_client, {"east": {here: 8}}, 1) == {"east": {here: LogPiece("four\n", 13)}}


def test_a_host_that_does_not_answer_is_missing_and_the_others_are_not(
    redis_client: redis.Redis, tmp_path: Path
) -> None:
    route = printed(tmp_path, "one\n")
    with answering(redis_client, "east", tmp_path):
        asked = {"gone": {uuid4(): None}, "east": {route: None}}
        told = eventually(lambda: read_logs(redis_client, asked, 10, SOON), what="the one to answer in time")
    assert told == {"east": {route: LogPiece("one\n", 4)}}
    assert not redis_client.exists("rollway:logs:gone"), "and what it was asked is taken back"


def test_a_question_that_does_not_fit_is_left_and_the_next_one_answered(
    redis_client: redis.Redis, tmp_path: Path
) -> None:
    route = printed(tmp_path, "one\n")
    for wrong in (b"", b"\xff", b'{"answer_to": "../x", "lines": 1, "places": {}}', b"[" * 5000):
        redis_client.rpush("rollway:logs:east", wrong)
    with answering(redis_client, "east", tmp_path):
        assert read_logs(redis_client, {"east": {route: None}}, 10) == {"east": {route: LogPiece("one\n", 4)}}


def test_an_answer_is_bounded_and_the_rest_is_asked_for_again(tmp_path: Path) -> None:
    routes = [printed(tmp_path, f"{'x' * 999}\n" * 600) for _ in range(3)]
    asked = LogQuestion(answer_to=uuid4(), lines=1000, places=dict.fromkeys(routes))
    found = LogAnswers(tmp_path).pieces(asked)
    assert 0 < sum(len(piece.text) for piece in found.values()) <= MOST_BYTES
    assert len(found) == 1


def test_a_log_that_is_as_long_as_an_answer_is_told_all_the_same(tmp_path: Path) -> None:
    route = printed(tmp_path, "x" * MOST_BYTES)
    asked = LogQuestion(answer_to=uuid4(), lines=1, places={route: None, printed(tmp_path, "one\n"): None})
    found = LogAnswers(tmp_path).pieces(asked)
    assert {route: len(piece.text) for route, piece in found.items()} == {route: MOST_BYTES + 1}
