"""A stream of server-sent events, read in a thread of its own, for tests."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import httpx

from tests.support.stack.waiting import eventually


@dataclass(frozen=True)
class Heard:
    kind: str
    id: str
    data: dict[str, Any]
    at: float


@dataclass
class EventStream:
    """What has been heard. `is_over`: the server has ended it."""

    heard: list[Heard] = field(default_factory=list)
    is_over: bool = False

    def of(self, kind: str, **values: object) -> list[Heard]:
        return [event for event in self.heard if event.kind == kind and values.items() <= event.data.items()]

    def wait(self, kind: str, **values: object) -> Heard:
        found: list[Heard] = eventually(lambda: self.of(kind, **values), what=f"{kind} {values}")
        return found[0]


@contextmanager
def listening(client: httpx.Client, path: str = "/v1/events", *, last: str | None = None) -> Iterator[EventStream]:
    """Listen until the end of the block. `last`: the id of the event that was heard last."""
    stream, headers = EventStream(), {} if last is None else {"last-event-id": last}
    with client.stream("GET", path, headers=headers, timeout=None) as answer:
        assert answer.status_code == 200, answer.read()
        thread = threading.Thread(target=_listen, args=(answer, stream), daemon=True)
        thread.start()
        if last is None:
            stream.wait("begun")
        yield stream


def _listen(answer: httpx.Response, stream: EventStream) -> None:
    fields: dict[str, str] = {}
    with suppress(httpx.HTTPError, RuntimeError, OSError, AttributeError):
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            if line:
                fields[name] = value
            elif "event" in fields:
                stream.heard.append(Heard(fields["event"], fields["id"], json.loads(fields["data"]), monotonic()))
                fields = {}
    stream.is_over = True
