"""Proxies that poll whole tables, as Traefik does: a poll acknowledges a table that was given long enough ago.

A proxy reads a table, and applies it after the pause that its throttle keeps since the last table:

    poll          A     B     B     B     B     B
    takes over    A ────── throttle ──────B
    acknowledges  -     A     A     A     A     B      once B was told for as long as the throttle, and APPLY_SECONDS
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from api.proxies.publisher import Published, Publisher
from api.proxies.recorder import Recorder
from db.proxies.acks import SeenProxy
from traffic.resources import Watermark

APPLY_SECONDS = 1.0
"""The time a proxy needs to read a table and to put it in place, besides its throttle."""


class _Told(NamedTuple):
    """A table that a proxy got, first at this monotonic time."""

    at: float
    table: Watermark


@dataclass(eq=False, slots=True)
class WholeTables:
    """Remembers the tables that each proxy got, with their times, from its newest acknowledged one on."""

    publisher: Publisher
    recorder: Recorder
    _history: dict[str, Sequence[_Told]] = field(default_factory=dict)

    async def poll(self, proxy: SeenProxy, throttle_seconds: float) -> Published | None:
        """Record a poll; returns the table to give, or None while there is none yet.

        `throttle_seconds`: the pause that it keeps between two tables.
        """
        asked_at = time.monotonic()
        self._history = {
            node: history for node, history in self._history.items() if node in self.recorder.presence.nodes
        }
        await self.recorder.hear(proxy)
        history = self._history.get(proxy.node_id, ())
        acknowledged = [each for each in history if asked_at - each.at >= throttle_seconds + APPLY_SECONDS]
        if acknowledged:
            self.recorder.knows(proxy.node_id, acknowledged[-1].table, is_news=True)
        current = self.publisher.current
        if current is not None:
            self._history[proxy.node_id] = _with(history[max(0, len(acknowledged) - 1) :], current.watermark)
        return current


def _with(history: Sequence[_Told], table: Watermark) -> Sequence[_Told]:
    """Record that this table was given; a proxy that has an equal one keeps its time."""
    if history and history[-1].table.version == table.version:
        return *history[:-1], _Told(history[-1].at, table)
    return *history, _Told(time.monotonic(), table)
