"""Signed commands: a key that only the sender and the workers have proves the sender."""

import hmac
import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from domain.text.errors import InvalidInputError, RollwayError

SIGNED_FIELDS = frozenset({"payload", "sender", "sent_at", "signature"})
LIFE = timedelta(hours=1)
"""The lifetime of a signature. Commands are remembered for longer, so none is ever carried out twice."""

_SENDER = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._@-]{0,61}[A-Za-z0-9])?")
_LEAST_KEY = 32


class SignedCommand(BaseModel):
    """A command as text, its sender, its time (seconds since 1970), and its signature.

    The signature is the HMAC-SHA256, in hexadecimal, of sender, sent_at, task and payload, a line each.
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    payload: str
    sender: str = Field(max_length=63)
    sent_at: int = Field(ge=0, le=10**11)
    signature: str


class UnsignedError(RollwayError):
    """Commands must be signed here, and this one is not."""


class WrongSignatureError(RollwayError):
    """The signature is of another key, of another command, or of another time."""


def sign(key: str, task: str, sender: str, sent_at: int, payload: str) -> str:
    """The signature of a command, its payload as JSON text."""
    signed = f"{sender}\n{sent_at}\n{task}\n{payload}"
    return hmac.new(key.encode(), signed.encode(errors="surrogatepass"), "sha256").hexdigest()


def parse_keys(text: str) -> dict[str, str]:
    """The key of each sender, from lines `sender = key`. Raises InvalidInputError naming the line, and no key."""
    keys: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        sender, _, key = (part.strip() for part in line.partition("="))
        if not _SENDER.fullmatch(sender) or len(key) < _LEAST_KEY or sender in keys:
            right = (
                f"'sender = key': a name, once, and at least {_LEAST_KEY} characters, as 'openssl rand -hex 32' makes"
            )
            raise InvalidInputError(f"line {number} must be {right}", field=f"line {number}")
        keys[sender] = key
    if not keys:
        raise InvalidInputError("it names no sender; it has a line 'sender = key' for each", field="line 1")
    return keys


def proven_payload(task: str, payload: Mapping[str, object], keys: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """The payload of a signed command, with its sender as the actor. Raises UnsignedError and WrongSignatureError."""
    if payload.keys() != SIGNED_FIELDS:
        raise UnsignedError(
            f"{task} is not signed, and this installation takes signed commands only; "
            "'examples/enqueue_activate_revision.py' shows how to sign one"
        )
    try:
        command = SignedCommand.model_validate(dict(payload))
    except ValidationError as error:
        raise InvalidInputError.of(error) from None
    expected = sign(keys.get(command.sender, ""), task, command.sender, command.sent_at, command.payload)
    if command.sender not in keys or not hmac.compare_digest(
        expected.encode(), command.signature.encode(errors="replace")
    ):
        raise WrongSignatureError(
            "the signature does not fit: was it made with this sender's key, of this task and this very payload?",
            sender=command.sender,
        )
    if abs(now.timestamp() - command.sent_at) > LIFE.total_seconds():
        raise WrongSignatureError(
            f"the signature is of another time: sent_at is {command.sent_at} and it is {int(now.timestamp())} now; "
            "sign it again, and look at the sender's clock",
            sender=command.sender,
        )
    return {**payload_of(command.payload), "actor": command.sender}


def payload_of(text: str) -> dict[str, Any]:
    """The payload of a signed command. Raises InvalidInputError when it is no JSON object."""
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        raise InvalidInputError("payload: must be the text of a JSON object", field="payload")
    return payload
