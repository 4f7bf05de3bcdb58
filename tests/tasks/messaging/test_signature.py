"""Signed commands: whose key it is, what it was made of, and when."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from domain.text.errors import InvalidInputError, RollwayError
from tasks.messaging.signature import parse_keys, payload_of, proven_payload, sign

NOW = datetime(2030, 1, 1, tzinfo=UTC)
TASK = "rollway.scale"
KEY, OTHER_KEY = "k" * 32, "o" * 32
KEYS = {"ci": KEY, "lena": OTHER_KEY}
TEXT = json.dumps({"request_id": "r", "actor": "somebody"})


def signed(
    sender: str = "ci", key: str = KEY, task: str = TASK, at: datetime = NOW, text: str = TEXT
) -> dict[str, Any]:
    sent_at = int(at.timestamp())
    return {
        "payload": text,
        "sender": sender,
        "sent_at": sent_at,
        "signature": sign(key, task, sender, sent_at, text),
    }


def test_the_sender_is_the_actor_whatever_the_payload_says() -> None:
    assert proven_payload(TASK, signed(), KEYS, NOW) == {"request_id": "r", "actor": "ci"}


@pytest.mark.parametrize("apart", [timedelta(hours=-1), timedelta(hours=1)])
def test_a_signature_holds_for_its_life_to_the_second(apart: timedelta) -> None:
    assert proven_payload(TASK, signed(at=NOW + apart), KEYS, NOW)
    second = timedelta(seconds=1) if apart > timedelta(0) else -timedelta(seconds=1)
    with pytest.raises(RollwayError, match="is of another time"):
        proven_payload(TASK, signed(at=NOW + apart + second), KEYS, NOW)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"payload": {"request_id": "r"}}, "unsigned"),
        ({"payload": TEXT}, "unsigned"),
        ({**signed(), "colour": "red"}, "unsigned"),
        (signed(key=OTHER_KEY), "wrong_signature"),
        (signed(key=""), "wrong_signature"),
        (signed(sender="lena"), "wrong_signature"),
        (signed(sender="stranger"), "wrong_signature"),
        (signed(sender="stranger", key=""), "wrong_signature"),
        (signed(task="rollway.destroy"), "wrong_signature"),
        ({**signed(), "payload": TEXT + " "}, "wrong_signature"),
        ({**signed(), "sent_at": signed()["sent_at"] + 1}, "wrong_signature"),
        ({**signed(), "signature": ""}, "wrong_signature"),
        ({**signed(), "signature": "\ud800"}, "wrong_signature"),
        ({**signed(), "signature": None}, "invalid_input"),
        ({**signed(), "payload": {"request_id": "r"}}, "invalid_input"),
        ({**signed(), "sent_at": "now"}, "invalid_input"),
        ({**signed(), "sent_at": 10**400}, "invalid_input"),
        (signed(at=NOW - timedelta(days=1)), "wrong_signature"),
        (signed(text="[]"), "invalid_input"),
        (signed(text="hello"), "invalid_input"),
    ],
)
def test_what_is_not_signed_or_signed_wrongly_is_refused(given: dict[str, Any], code: str) -> None:
    with pytest.raises(RollwayError) as refused:
        proven_payload(TASK, given, KEYS, NOW)
    assert refused.value.code == code
    assert KEY not in str(refused.value.as_json())


def test_what_other_services_are_shown_makes_a_signature_that_holds() -> None:
    page = (Path(__file__).parents[3] / "docs/commands.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    shown: dict[str, Any] = {}
    exec(compile(code, "docs/commands.md", "exec"), shown)
    made = shown["signed"](TASK, {"request_id": "r", "reason": "größer"}, "ci", KEY)
    now = datetime.fromtimestamp(made["sent_at"], UTC)
    assert proven_payload(TASK, made, KEYS, now) == {"request_id": "r", "reason": "größer", "actor": "ci"}


def test_a_payload_nested_without_end_is_no_payload() -> None:
    with pytest.raises(InvalidInputError, match="payload: must be the text of a JSON object"):
        payload_of("[" * 100_000)


def test_a_file_of_keys_has_a_line_for_each_sender() -> None:
    assert parse_keys(f"# who\n\nci = {KEY}\n  lena={OTHER_KEY}=\n") == {"ci": KEY, "lena": f"{OTHER_KEY}="}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "it names no sender"),
        ("# nobody", "it names no sender"),
        (f"ci {KEY}", "line 1"),
        (f"ci = {KEY}\nci = {OTHER_KEY}", "line 2"),
        (f"\nci = {KEY[1:]}", "line 2"),
        (f"a b = {KEY}", "line 1"),
        (f"{'c' * 64} = {KEY}", "line 1"),
        (f" = {KEY}", "line 1"),
    ],
)
def test_a_line_that_makes_no_sense_is_named_without_its_key(text: str, line: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^{line}") as refused:
        parse_keys(text)
    assert KEY[1:] not in refused.value.message
