"""What 200 event streams cost on one server for people while ten rollouts run, and how soon a change reaches them.

A change is a record of the timeline: from when it was dated, which is before its commit, until each stream has it.
Both are read from one clock, that of this machine.
"""

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from domain.installation.tokens import Role
from tests.support.people.people_api import People
from tools.bench.figures import percentiles
from tools.bench.stage import Stage, rolling, stage
from tools.bench.watch import processors, watching

STREAMS, ROLLOUTS, REPLICAS = 200, 10, 10
_WORKERS = 2
_START_SECONDS = 1.0
_DATED = re.compile(rb'event: history\ndata: .*?"updated_at":"([^"]+)"')
_NAMES = [f"web-{number}" for number in range(ROLLOUTS)]


@dataclass(slots=True)
class Heard:
    """What one stream brought: seconds from each record's date until it was here, and how many events there were."""

    since: float
    waits: list[float] = field(default_factory=list)
    events: int = 0

    def take(self, events: bytes) -> None:
        """Whole events."""
        now = time.time()
        self.events += events.count(b"\nevent: ")
        dates = (datetime.fromisoformat(found.decode()).timestamp() for found in _DATED.findall(events))
        self.waits += [now - date for date in dates if date >= self.since]


def measure(*, full: bool) -> dict[str, Any]:
    """The share of a core that the server takes, without streams and with them, and the waits of all of them."""
    counts = (1, STREAMS) if full else (STREAMS,)
    return {"rows": [asyncio.run(run(count)) for count in counts]}


async def run(streams: int) -> Mapping[str, Any]:
    """Ten rollouts of ten replicas each, begun together, with so many who listen."""
    with stage() as made:
        made.start_simulation(_WORKERS, _START_SECONDS)
        for name in _NAMES:
            made.deploy(name, REPLICAS, rolling(1, 1))
        with made.serving_people() as people:
            return await _watched(made, people, streams)


async def _watched(made: Stage, people: People, streams: int) -> Mapping[str, Any]:
    heard = [Heard(time.time()) for _ in range(streams)]
    token = people.token(Role.VIEWER)
    listening = [asyncio.create_task(_listen(people.server.url, token, each)) for each in heard]
    while any(each.events == 0 for each in heard):  # noqa: ASYNC110  (each of them sets none)
        await asyncio.sleep(0.1)
    for each in heard:
        each.since = time.time()
    cost = await asyncio.to_thread(_roll_out, made)
    took = cost["seconds"]
    for task in listening:
        task.cancel()
    waits = [1000 * wait for each in heard for wait in each.waits]
    return {
        "streams": streams,
        "rollouts": ROLLOUTS,
        "seconds": took,
        "events_a_second": sum(each.events for each in heard) / streams / took,
        "server_%_of_a_core": 100 * cost["cpu_share"]["people"],
        **processors(cost, ROLLOUTS),
        **{f"wait_p{part}_ms": percentiles(waits)[part] for part in (50, 95, 99)},
    }


def _roll_out(made: Stage) -> Mapping[str, Any]:
    """All of them; what it cost."""
    figures: dict[str, Any] = {}
    with watching(made, figures):
        for name in _NAMES:
            made.activate(name, "v2")
        for name in _NAMES:
            made.wait_until_idle(name, within=300)
    cost: Mapping[str, Any] = figures["cost"]
    return cost


async def _listen(url: str, token: str, heard: Heard) -> None:
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(f"GET /v1/events HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    rest = b""
    while piece := await reader.read(1 << 20):
        events, _, rest = (rest + piece).rpartition(b"\n\n")
        heard.take(events)
    raise ConnectionError("the server ended a stream")
