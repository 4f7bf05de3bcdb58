"""Messages as they lie in Redis: right ones, and every kind of wrong one with the words of the reason."""

import base64
import json
from typing import Any
from uuid import uuid4

LIMIT = 2**20
_MISSING = object()


def body_of(decoded: Any) -> str:
    return base64.b64encode(json.dumps(decoded).encode()).decode()


def scale_nobody(request_id: str = "r") -> Any:
    """The body of a command that is answered and changes nothing."""
    return [[], {"payload": {"request_id": request_id, "deployment": "nobody", "desired_replicas": 1}}, {}]


def envelope(**changes: Any) -> dict[str, Any]:
    """A message in its least form; `headers__task=...` changes a header, MISSING takes a field away."""
    message: dict[str, Any] = {
        "body": body_of(scale_nobody()),
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": {"task": "rollway.scale", "id": str(uuid4())},
        "properties": {
            "body_encoding": "base64",
            "delivery_tag": str(uuid4()),
            "delivery_info": {"exchange": "commands", "routing_key": "commands"},
        },
    }
    for path, value in changes.items():
        *above, name = path.replace("content_", "content-").split("__")
        fields = message[above[0]] if above else message
        if not isinstance(fields, dict):
            continue  # an earlier change put something else there
        if value is _MISSING:
            del fields[name]
        else:
            fields[name] = value
    return message


def raw(**changes: Any) -> bytes:
    return json.dumps(envelope(**changes)).encode()


def _deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


MALFORMED: dict[str, tuple[bytes, str]] = {
    "not JSON": (b"hello", "JSON"),
    "empty": (b"", "JSON"),
    "null": (b"null", "object"),
    "a list": (b"[]", "object"),
    "a number": (b"5", "object"),
    "a string": (b'"x"', "object"),
    "true": (b"true", "object"),
    "bytes": (b"\xff\xfe\x00\x80", "JSON"),
    "half of it": (raw()[:200], "JSON"),
    "two of it": (raw() * 2, "JSON"),
    "pickle": (b"\x80\x04K\x01.", "JSON"),
    "nested without end": (_deep(100_000), "JSON"),
    "an empty object": (b"{}", "headers"),
    "larger than allowed": (raw(body="A" * LIMIT), "bytes"),
    "no headers": (raw(headers=_MISSING), "headers"),
    "headers null": (raw(headers=None), "headers"),
    "headers a list": (raw(headers=[1]), "headers"),
    "no task": (raw(headers__task=_MISSING), "headers.task"),
    "task null": (raw(headers__task=None), "headers.task"),
    "task a number": (raw(headers__task=5), "headers.task"),
    "task a list": (raw(headers__task=["rollway.scale"]), "headers.task"),
    "a task nobody knows": (raw(headers__task="rollway.explode"), "no task of Rollway's"),
    "a task of Celery's": (raw(headers__task="celery.backend_cleanup"), "no task of Rollway's"),
    "no id": (raw(headers__id=_MISSING), "headers.id"),
    "id null": (raw(headers__id=None), "headers.id"),
    "id a number": (raw(headers__id=5), "headers.id"),
    "id empty": (raw(headers__id=""), "headers.id"),
    "id with spaces": (raw(headers__id="a b"), "headers.id"),
    "id too long": (raw(headers__id="a" * 201), "headers.id"),
    "id with half a surrogate pair": (raw(headers__id="\ud800"), "headers.id"),
    "expires a number": (raw(headers__expires=5), "headers.expires"),
    "expires no time": (raw(headers__expires="soon"), "headers.expires"),
    "expires before all time": (raw(headers__expires="0001-01-01T00:00:00+23:00"), "headers.expires"),
    "an eta": (raw(headers__eta="2040-01-01T00:00:00+00:00"), "headers.eta"),
    "compressed": (raw(headers__compression="application/x-gzip"), "headers.compression"),
    "timelimit a number": (raw(headers__timelimit=5), "headers.timelimit"),
    "root_id a list": (raw(headers__root_id=[]), "headers.root_id"),
    "ignore_result a text": (raw(headers__ignore_result="maybe"), "headers.ignore_result"),
    "no properties": (raw(properties=_MISSING), "properties"),
    "properties null": (raw(properties=None), "properties"),
    "an encoding nobody knows": (raw(properties__body_encoding="rot13"), "properties.body_encoding"),
    "no encoding": (raw(properties__body_encoding=_MISSING), "properties.body_encoding"),
    "no content type": (raw(content_type=None), "content-type"),
    "content type pickle": (raw(content_type="application/x-python-serialize"), "content-type"),
    "content encoding binary": (raw(content_encoding="binary"), "content-encoding"),
    "no body": (raw(body=_MISSING), "body"),
    "body a number": (raw(body=1), "body"),
    "body an object": (raw(body={}), "body"),
    "body empty": (raw(body=""), "body"),
    "body no base64": (raw(body="***"), "body"),
    "body cut off": (raw(body=body_of(scale_nobody())[:-5]), "body"),
    "body no JSON": (raw(body=base64.b64encode(b"hello").decode()), "body"),
    "body of one": (raw(body=body_of([[]])), "body"),
    "body of five": (raw(body=body_of([[], {}, {}, {}, {}])), "body"),
    "body no list": (raw(body=body_of({"args": []})), "body"),
    "body nested without end": (raw(body=base64.b64encode(_deep(50_000)).decode()), "body"),
    "keyword arguments a list": (raw(body=body_of([[], [], {}])), "body 2"),
    "an object of Kombu's": (raw(body=body_of([[], {"x": {"__type__": "uuid", "__value__": 5}}, {}])), "__type__"),
    "a chain": (raw(body=body_of([[], {}, {"chain": [{"task": "rollway.destroy"}]}])), "callbacks, chains"),
    "a callback": (raw(body=body_of([[], {}, {"callbacks": [{"task": "rollway.destroy"}]}])), "callbacks, chains"),
}
"""By what is wrong: the message, and words of the reason."""

BROADCASTS: dict[str, bytes] = {
    "not JSON": b"hello",
    "null": b"null",
    "a list": b"[]",
    "a number": b"5",
    "nested without end": _deep(100_000),
    "no body": b'{"properties": {"body_encoding": "base64"}}',
    "no properties": json.dumps({"body": body_of({"method": "ping"})}).encode(),
    "an order to end": json.dumps(
        {
            "body": body_of({"method": "shutdown", "arguments": {}}),
            "content-type": "application/json",
            "content-encoding": "utf-8",
            "headers": {},
            "properties": {
                "body_encoding": "base64",
                "delivery_tag": "x",
                "delivery_info": {"exchange": "celery.pidbox", "routing_key": ""},
            },
        }
    ).encode(),
}
"""What would reach all workers as remote control."""
