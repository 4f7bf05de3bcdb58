"""Checks a message before a worker believes it: its shape, its task, its id, its body, its size."""

import base64
import json
import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast
from uuid import uuid4

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from domain.text.errors import InvalidInputError, TooLargeError
from domain.text.storable import storable
from tasks.messaging.flower_notes import notes_for_flower

MOST_MESSAGE_BYTES = 2**20
"""A larger message is not read. The largest command is a quarter of it; base64 and a signature make it longer."""


class UnfitMessageError(Exception):
    """The message does not fit; the text is the reason, in one sentence."""


def _known_task(task: str) -> str:
    from tasks.messaging.task_names import TASKS  # noqa: PLC0415 -- beat and Flower read no tasks, and load no commands

    if task not in TASKS:
        raise ValueError("is no task of Rollway's")
    return task


def _in_utc(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
        return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)).isoformat()
    except (ValueError, OverflowError):
        raise ValueError("must be a moment such as 2030-01-01T00:00:00+00:00") from None


def _short(note: object) -> object:
    return storable(note[:_MOST_CHARACTERS]) if isinstance(note, str) else note


def _trace(header: object) -> object:
    """A traceparent as W3C's Trace Context defines it; anything else counts as not sent."""
    return header if isinstance(header, str) and _TRACEPARENT.fullmatch(header) else None


_TRACEPARENT = re.compile("00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_MOST_CHARACTERS = 2000
_Note = Annotated[str, BeforeValidator(_short)] | None
_STRICT = ConfigDict(strict=True, extra="ignore")


class Headers(BaseModel):
    """The headers of Celery's that a worker goes by. The rest is dropped, so it can do no harm."""

    model_config = _STRICT

    task: Annotated[str, AfterValidator(_known_task)]
    id: str = Field(pattern=r"^[\x21-\x7e]{1,200}$")
    expires: Annotated[str, AfterValidator(_in_utc)] | None = None
    ignore_result: bool | None = None
    root_id: _Note = None
    parent_id: _Note = None
    origin: _Note = None
    traceparent: Annotated[str | None, BeforeValidator(_trace)] = None
    eta: None = Field(default=None, exclude=True)
    compression: None = Field(default=None, exclude=True)
    timelimit: Annotated[list[float | None], Field(min_length=2, max_length=2)] | None = Field(
        default=None, exclude=True
    )


class Properties(BaseModel):
    """The encoding of the body; Kombu has no other than this one."""

    model_config = _STRICT

    body_encoding: Literal["base64"]


class Envelope(BaseModel):
    """A message of a queue, as Kombu writes it."""

    model_config = _STRICT

    headers: Headers
    properties: Properties
    body: str
    content_type: Literal["application/json"] = Field(alias="content-type")
    content_encoding: Literal["utf-8"] = Field(alias="content-encoding")


_BODY: TypeAdapter[tuple[list[Any], dict[str, Any], dict[str, Any]]] = TypeAdapter(
    tuple[list[Any], dict[str, Any], dict[str, Any]]
)
_BODY_TEXT = re.compile(rb'"body": ?"[A-Za-z0-9+/=]*"')


def check_message(raw: bytes, queue: str) -> dict[str, Any]:
    """The message of this queue as Kombu reads it, made from the checked fields only. Raises UnfitMessageError."""
    envelope = _envelope(raw)
    positional, keywords = _arguments(envelope.body)
    return made_anew(envelope.body, _headers(envelope, positional, keywords), queue)


def refusal(raw: bytes, queue: str, why: str) -> dict[str, Any] | None:
    """A command with only the reason in place of its unfit body, so that its sender gets an answer.

    None when more than the body is wrong, or nobody waits for an answer.
    """
    try:
        envelope = _envelope(_BODY_TEXT.sub(b'"body": ""', raw, count=1))
    except UnfitMessageError:
        return None
    from tasks.messaging.task_names import ANSWERED  # noqa: PLC0415

    if envelope.headers.task not in ANSWERED:
        return None
    code = TooLargeError.code if len(raw) > MOST_MESSAGE_BYTES else InvalidInputError.code
    body = base64.b64encode(json.dumps([[], {code: why}, {}]).encode()).decode()
    return made_anew(body, _headers(envelope, [], {}), queue)


def made_anew(body: str, headers: dict[str, Any], queue: str) -> dict[str, Any]:
    """A message in Kombu's form with nothing in it but this."""
    return {
        "body": body,
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": headers,
        "properties": {
            "body_encoding": "base64",
            "delivery_tag": str(uuid4()),
            "delivery_info": {"exchange": queue, "routing_key": queue},
            "priority": 0,
        },
    }


def reason_of(error: ValidationError, where: str = "") -> str:
    """The faults, field by field, in one sentence."""
    return InvalidInputError.of(error, where).message


def _envelope(raw: bytes) -> Envelope:
    if len(raw) > MOST_MESSAGE_BYTES:
        raise UnfitMessageError(f"the message has {len(raw):,} bytes, and {MOST_MESSAGE_BYTES:,} are the most")
    try:
        document = json.loads(raw.decode())
    except (ValueError, RecursionError) as error:
        raise UnfitMessageError(f"the message is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise UnfitMessageError("the message is no object of JSON")
    try:
        return Envelope.model_validate(document)
    except ValidationError as error:
        raise UnfitMessageError(reason_of(error)) from None


def _headers(envelope: Envelope, positional: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
    headers = envelope.headers
    return {"lang": "py", **headers.model_dump(), **notes_for_flower(headers.task, positional, keywords)}


def _arguments(body: str) -> tuple[list[Any], dict[str, Any]]:
    """The positional and the named arguments of Celery's body. Its third part, what follows the task, must be empty."""
    try:
        positional, keywords, following = _BODY.validate_python(decoded(body))
    except ValidationError as error:
        raise UnfitMessageError(reason_of(error, "body")) from None
    if any(following.values()):
        raise UnfitMessageError("body.2: callbacks, chains and chords are not carried out; send the next task yourself")
    if "self" in keywords:  # as Celery calls the task itself
        raise UnfitMessageError("body.1: no argument may be called self")
    return positional, keywords


def decoded(body: str) -> object:
    """Decode a body. Raises UnfitMessageError."""
    try:
        return cast("object", json.loads(base64.b64decode(body, validate=True), object_hook=_plain))
    except (ValueError, RecursionError) as error:
        raise UnfitMessageError(f"body: cannot be decoded: {error}") from None


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Kombu makes an object of its own of such fields, or fails to."""
    if "__type__" in fields:
        raise ValueError("a field is called __type__, by which Kombu means an object and not JSON")
    return fields


class Broadcast(BaseModel):
    """A message to all workers, as Kombu writes it."""

    model_config = _STRICT

    properties: Properties
    body: str


class CeleryQuestion(BaseModel):
    """The questions of `celery inspect`, and of Flower every five seconds. Celery knows more, such as `shutdown`."""

    model_config = _STRICT

    method: Literal[
        "ping", "stats", "active", "reserved", "scheduled", "revoked", "registered", "active_queues", "conf", "report",
        "query_task", "clock", "enable_events"
    ]  # fmt: skip


def checked_broadcast(message: object) -> dict[str, Any]:
    """A question to all workers, made from the checked fields only. Raises UnfitMessageError."""
    try:
        broadcast = Broadcast.model_validate(message)
        CeleryQuestion.model_validate(decoded(broadcast.body))
    except ValidationError as error:
        raise UnfitMessageError(reason_of(error)) from None
    return made_anew(broadcast.body, {}, queue="")
