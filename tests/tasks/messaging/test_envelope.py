"""Messages before a worker believes them: what fits is made anew, what does not has a reason."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import Celery
from celery.worker.request import Request
from flower.inspector import Inspector
from hypothesis import given
from hypothesis import strategies as st
from kombu.connection import Connection
from kombu.transport.virtual import Message

from domain.commands.base import QUERIES
from domain.commands.registry import COMMANDS
from tasks.app import TASK_MODULES, app
from tasks.messaging.envelope import MOST_MESSAGE_BYTES, UnfitMessageError, check_message, checked_broadcast, refusal
from tasks.messaging.queues import celery_settings, takes_tasks
from tasks.messaging.task_names import TASKS
from tasks.task_settings import TaskSettings
from tests.support.rows.deployments import NOBODY
from tests.support.workers.envelopes import BROADCASTS, LIMIT, MALFORMED, body_of, envelope, raw, scale_nobody

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0a"
READER = Celery("reader", set_as_current=False)
CHANNEL = Connection("memory://").channel()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("wrong", MALFORMED)
def test_what_does_not_fit_is_refused_with_its_reason(wrong: str) -> None:
    message, words = MALFORMED[wrong]
    with pytest.raises(UnfitMessageError) as unfit:
        check_message(message, "commands")
    assert words in str(unfit.value)
    assert len(str(unfit.value)) < 600


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (raw(body="A" * 20_000_000), {"too_large": "why"}),
        (raw(body="***"), {"invalid_input": "why"}),
        (raw(body="AAAA"), {"invalid_input": "why"}),
        (raw(body=body_of([[]])), {"invalid_input": "why"}),
        (raw(body="AAAA", headers__task="rollway.audit"), None),
        (raw(body="AAAA", headers__id=None), None),
        (raw(body="A" * LIMIT, headers__origin="x" * LIMIT), None),
        (b"hello", None),
    ],
)
def test_a_sender_is_told_when_only_the_body_of_its_command_does_not_fit(
    message: bytes, told: dict[str, str] | None
) -> None:
    made = refusal(message, "commands", "why")
    assert (made and json.loads(base64.b64decode(made["body"]))) == (told and [[], told, {}])


def test_what_fits_is_made_anew_from_what_was_checked() -> None:
    given = envelope(headers__shadow=5, headers__stamps=[1], headers__retries="x", properties__delivery_info=7)
    made = check_message(json.dumps(given).encode(), "commands")
    assert made["body"] == given["body"]
    assert made["properties"]["delivery_info"] == {"exchange": "commands", "routing_key": "commands"}
    assert made["headers"]["id"] == given["headers"]["id"]
    assert made["headers"]["shadow"] == "rollway.scale"
    assert {"stamps", "retries", "eta", "timelimit"}.isdisjoint(made["headers"])


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, None),
        ("2030-01-01T00:00:00+02:00", "2029-12-31T22:00:00+00:00"),
        ("2030-01-01T00:00:00", "2030-01-01T00:00:00+00:00"),
    ],
)
def test_an_expiry_is_a_moment_in_utc(given: str | None, kept: str | None) -> None:
    assert check_message(raw(headers__expires=given), "commands")["headers"]["expires"] == kept


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (TRACEPARENT, TRACEPARENT),
        (None, None),
        (5, None),
        (f"{TRACEPARENT}0", None),
        (TRACEPARENT.upper(), None),
        ("ff" + TRACEPARENT[2:], None),
    ],
)
def test_the_trace_of_a_message_is_kept_when_it_is_one(given: object, kept: str | None) -> None:
    assert check_message(raw(headers__traceparent=given), "commands")["headers"]["traceparent"] == kept


def test_the_limit_is_met_to_the_byte() -> None:
    assert LIMIT == MOST_MESSAGE_BYTES
    padded = raw() + b" " * (LIMIT - len(raw()))
    assert check_message(padded, "commands")
    with pytest.raises(UnfitMessageError, match="1,048,577 bytes"):
        check_message(padded + b" ", "commands")


def test_every_task_that_is_known_is_one_of_the_app_and_none_is_missing(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setenv("ROLLWAY_HOME", str(tmp_path))
    for module in TASK_MODULES:
        app.loader.import_task_module(module)
    assert {name for name in app.tasks if not name.startswith("celery.")} == TASKS
    assert {*COMMANDS, *QUERIES} < TASKS
    assert {app.tasks[task].Request for task in TASKS} == {"tasks.worker.task_events:ShownRequest"}


@pytest.mark.parametrize("options", [{}, {"expires": 60, "time_limit": 9}, {"ignore_result": True, "priority": 3}])
def test_what_celery_itself_sends_fits(redis_client: redis.Redis, redis_url: str, options: dict[str, int]) -> None:
    producer = Celery("producer", set_as_current=False)
    producer.conf.update(celery_settings(TaskSettings(redis_url=redis_url)))
    for task in TASKS:
        producer.send_task(task, kwargs={"payload": {"a": "ä\ud83d"}}, queue="commands", retry=False, **options)
    producer.close()
    (key,) = redis_client.keys("rollway:commands*")
    sent: list[bytes] = redis_client.lrange(key, 0, -1)  # type: ignore[assignment]
    made = [check_message(message, "commands") for message in sent]
    assert {message["headers"]["task"] for message in made} == TASKS
    assert [json.loads(base64.b64decode(message["body"]))[1] for message in made] == [
        {"payload": {"a": "ä\ud83d"}} for _ in TASKS
    ]


def test_only_queues_of_tasks_are_looked_at() -> None:
    names = [queue.name for queue in celery_settings(TaskSettings(redis_url=NOBODY))["task_queues"]]
    assert all(map(takes_tasks, names))
    assert not takes_tasks("0b1f.reply.celery.pidbox")


@pytest.mark.parametrize("wrong", [name for name in BROADCASTS if name not in ("not JSON", "nested without end")])
def test_a_broadcast_that_is_no_question_is_refused(wrong: str) -> None:
    with pytest.raises(UnfitMessageError):
        checked_broadcast(json.loads(BROADCASTS[wrong]))


@pytest.mark.parametrize("method", ["ping", "enable_events", *Inspector.inspect_methods])
def test_a_question_to_all_workers_is_passed_on(method: str) -> None:
    given = envelope(body=body_of({"method": method, "arguments": {}}), headers=[5])
    assert checked_broadcast(given)["headers"] == {}


def test_a_body_in_its_least_form_is_a_body() -> None:
    assert check_message(raw(body=body_of(scale_nobody())), "commands")
    assert check_message(raw(body=body_of([[], {}, {"callbacks": None, "chain": None}])), "commands")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PLACES = st.sampled_from(
    [
        *("body", "content_type", "content_encoding", "headers", "properties"),
        *(f"headers__{name}" for name in ("task", "id", "expires", "eta", "shadow", "retries", "group", "origin")),
        *(f"headers__{name}" for name in ("timelimit", "root_id", "traceparent", "stamps", "stamped_headers", "lang")),
        *(f"properties__{name}" for name in ("body_encoding", "delivery_tag", "delivery_info", "priority", "reply_to")),
    ]
)


@given(st.dictionaries(PLACES, ANYTHING, max_size=3), st.none() | ANYTHING)
def test_whatever_stands_anywhere_has_a_reason_or_is_a_request_for_celery(changes: dict[str, Any], body: Any) -> None:
    message = raw(**dict(sorted(changes.items()))) if body is None else raw(body=body_of(body))
    try:
        made = check_message(message, "commands")
    except UnfitMessageError as unfit:
        told = str(unfit)
        assert told
        return
    taken = Message(made, channel=CHANNEL)  # type: ignore[no-untyped-call]
    Request(taken, app=READER, task=READER.tasks["celery.map"], headers=taken.headers, body=taken.body)


@given(st.binary(max_size=200))
def test_no_bytes_are_a_message_by_chance(message: bytes) -> None:
    with pytest.raises(UnfitMessageError):
        check_message(message, "commands")
    assert refusal(message, "commands", "why") is None
