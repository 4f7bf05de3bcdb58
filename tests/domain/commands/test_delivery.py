"""How events are sent: the document, the signature, the pauses between tries, the file of targets."""

import base64
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from domain.commands.registry import parse_command
from domain.outbox.delivery import MOST_QUEUED, Failure, Pending, body_of, cloud_event, failure, signed_headers
from domain.outbox.targets import parse_targets
from domain.text.errors import InvalidInputError
from tests.support.pictures.pictures import NOW
from tests.support.workers.payloads import ask, expect_a_limit

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PENDING = Pending(
    position=42,
    id=UUID(int=7),
    type="rollway.rollout.begun",
    deployment="web",
    at=NOW,
    data={"sentence": "größer"},
    installation=UUID(int=1),
    subscription="ci",
    webhook="ci",
    task=None,
    queue=None,
    give_up_after=timedelta(days=1),
    tries=1,
    tried_at=NOW,
)


def test_the_document_is_a_cloud_event_and_the_same_in_each_try() -> None:
    document = cloud_event(PENDING)
    assert document == {
        "specversion": "1.0",
        "id": "00000000-0000-0000-0000-000000000007",
        "source": "/rollway/00000000-0000-0000-0000-000000000001",
        "type": "rollway.rollout.begun",
        "subject": "web",
        "time": "2026-03-14T12:00:00+00:00",
        "sequence": "00000000000000000042",
        "datacontenttype": "application/json",
        "data": {"sentence": "größer"},
    }
    assert json.loads(body_of(document)) == document
    assert body_of(cloud_event(replace(PENDING, tries=9, tried_at=NOW + timedelta(hours=1)))) == body_of(document)


def test_a_signature_is_that_of_standard_webhooks_one_for_each_key() -> None:
    """The example of their libraries, whose message id is no UUID."""
    (key, other) = parse_targets(f"ci = https://h/ {SECRET} whsec_{'A' * 32}")["ci"].keys
    at = NOW.fromtimestamp(1614265330, NOW.tzinfo)
    headers = signed_headers(b'{"test": 2432232314}', "msg_p5jXN8AQM9LWM0D4loKWxJek", at, [key, other])
    assert headers["webhook-timestamp"] == "1614265330"
    assert headers["webhook-id"] == "msg_p5jXN8AQM9LWM0D4loKWxJek"
    first, second = headers["webhook-signature"].split(" ")
    assert first == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert second.startswith("v1,")
    assert second != first


@pytest.mark.parametrize(
    ("tries", "hours", "wanted", "pause"),
    [
        (1, 0, True, 1),
        (2, 0, True, 2),
        (9, 1, True, 256),
        (10, 1, True, 300),
        (10_000, 23.9, True, 300),
        (10, 24, True, None),
        (1, 0, False, None),
    ],
)
def test_a_try_that_failed_is_repeated_ever_more_slowly_until_it_is_given_up(
    tries: int, hours: float, *, wanted: bool, pause: int | None
) -> None:
    tried = replace(PENDING, tries=tries, tried_at=NOW + timedelta(hours=hours))
    expected = None if pause is None else timedelta(seconds=pause)
    assert failure(tried, "away", is_wanted=wanted) == Failure("away", expected, ends=not wanted)


def test_targets_are_lines_and_comments() -> None:
    targets = parse_targets(
        f"# ours\n\nci = https://h:1/a?b=c {SECRET}\npager=http://127.0.0.1:9000 {SECRET} {SECRET}\n"
    )
    assert {name: (target.url, len(target.keys)) for name, target in targets.items()} == {
        "ci": ("https://h:1/a?b=c", 1),
        "pager": ("http://127.0.0.1:9000", 2),
    }
    assert SECRET not in repr(targets)
    assert "https" not in repr(targets)


def secret(length: int) -> str:
    return f"whsec_{base64.b64encode(bytes(length)).decode()}"


@pytest.mark.parametrize(
    "line",
    [
        f"c = https://h {secret(24)}",
        f"c = HTTPS://h {secret(64)}",
        f"{'c' * 63} = http://h:65535 {SECRET}",
        f"  C.i_1-x = http://[::1]/a=b {SECRET}  ",
    ],
)
def test_a_target_at_its_limits_is_taken(line: str) -> None:
    ((name, target),) = parse_targets(line).items()
    assert name == line.partition("=")[0].strip()
    assert target.url in line
    assert 24 <= len(target.keys[0]) <= 64


@pytest.mark.parametrize(
    "line",
    [
        "ci",
        f"ci = https://h {secret(23)}",
        f"ci = https://h {secret(65)}",
        f"ci = https://h {SECRET} {secret(23)}",
        f"{'c' * 64} = https://h {SECRET}",
        f"ci- = https://h {SECRET}",
        f"= https://h {SECRET}",
        f"ci = https://[h {SECRET}",
        f"ci = https://h:65536 {SECRET}",
        "ci =",
        "ci = https://h",
        f"ci = ftp://h {SECRET}",
        f"ci = https:// {SECRET}",
        f"ci = https://h:0 {SECRET}",
        f"ci = https://h:x {SECRET}",
        f"c i = https://h {SECRET}",
        "ci = https://h whsec_short",
        "ci = https://h whsec_!",
        f"ci = https://h {SECRET}!!!!",
        f"ci = https://h {SECRET.removeprefix('whsec_')}",
        f"ci = https://h whsec_{'A' * 128}",
        f"other = https://h {SECRET}",
    ],
)
def test_a_wrong_line_is_named_and_no_secret_with_it(line: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^line 2 must be 'name = URL whsec_\.\.\.'") as refused:
        parse_targets(f"other = https://h {SECRET}\n{line}")
    assert refused.value.detail == {"field": "line 2"}
    assert SECRET not in refused.value.message


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "needs one of webhook"),
        ({"webhook": "ci", "celery_task": "shop.told"}, "needs one of webhook"),
        ({"webhook": "ci", "queue": "shop"}, "queue belongs to celery_task"),
        ({"celery_task": "rollway.destroy"}, "celery_task must be one of yours"),
        (
            {"webhook": "ci", "types": ["rollway.rollout.burst"]},
            r"type 1: must be 'rollway\.deployment\.created'",
        ),
        ({"webhook": "ci", "give_up_after_seconds": 0}, "give_up_after_seconds: must be at least"),
    ],
)
def test_a_subscription_says_one_way_and_what_exists(given: dict[str, object], why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        parse_command("rollway.set_subscription", {"request_id": "r", "subscription": "ci", **given})


@pytest.mark.parametrize("given", [{"webhook": "ci"}, {"celery_task": "shop.told", "queue": "shop"}])
def test_either_way_alone_is_taken(given: dict[str, object]) -> None:
    command = parse_command("rollway.set_subscription", {"request_id": "r", "subscription": "ci", **given})
    assert command.model_dump().items() >= given.items()


def test_a_body_is_compact_and_sorted_and_says_every_letter_as_it_is() -> None:
    assert body_of({"b": 1, "a": "größer"}) == '{"a":"größer","b":1}'.encode()


@pytest.mark.parametrize(
    ("taken", "refused"),
    [
        ({"webhook": "w" * 200}, {"webhook": "w" * 201}),
        ({"webhook": "a-target"}, {"webhook": "a target"}),
        ({"celery_task": "t" * 200}, {"celery_task": "t" * 201}),
        ({"celery_task": "rollways.told"}, {"celery_task": "rollway.told"}),
        ({"celery_task": "celery"}, {"celery_task": "celery.chain"}),
        ({"celery_task": "t", "queue": "q" * 200}, {"celery_task": "t", "queue": "q" * 201}),
        (
            {"webhook": "ci", "types": ["rollway.rollout.begun"] * 100},
            {"webhook": "ci", "types": ["rollway.rollout.begun"] * 101},
        ),
        ({"webhook": "ci", "deployments": ["web"] * 100}, {"webhook": "ci", "deployments": ["web"] * 101}),
        ({"webhook": "ci", "give_up_after_seconds": 1}, {"webhook": "ci", "give_up_after_seconds": 0}),
        ({"webhook": "ci", "give_up_after_seconds": 2_592_000}, {"webhook": "ci", "give_up_after_seconds": 2_592_001}),
        ({"webhook": "ci", "give_up_after_seconds": 60}, {"webhook": "ci", "give_up_after_seconds": "60"}),
    ],
)
def test_the_limits_of_a_subscription(taken: dict[str, Any], refused: dict[str, Any]) -> None:
    expect_a_limit("set_subscription", taken, refused)


def test_what_a_subscription_leaves_open() -> None:
    assert ask("set_subscription", webhook="ci").model_dump() == {
        "request_id": "r",
        "actor": "unknown",
        "reason": "",
        "schema_version": 1,
        "subscription": "ci",
        "webhook": "ci",
        "celery_task": None,
        "queue": None,
        "types": (),
        "deployments": (),
        "give_up_after_seconds": 86_400,
    }


def test_the_documented_length_of_a_queue_that_nobody_reads() -> None:
    assert MOST_QUEUED == 1000
