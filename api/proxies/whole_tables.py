"""Proxies that take over whole tables, as Traefik does: each poll acknowledges the table of the poll before."""

from dataclasses import dataclass, field

from api.proxies.publisher import Published, Publisher
from api.proxies.recorder import Recorder
from db.proxies.acks import SeenProxy


@dataclass(eq=False, slots=True)
class WholeTables:
    """Remembers the last table that each of them got."""

    publisher: Publisher
    recorder: Recorder
    _last: dict[str, Published] = field(default_factory=dict)

    async def poll(self, proxy: SeenProxy) -> Published | None:
        """Note that the proxy asks again; the table to give it, or None while there is none yet."""
        self._last = {node: last for node, last in self._last.items() if node in self.recorder.presence.nodes}
        known = self._last.get(proxy.node_id)
        await self.recorder.hear(proxy)
        if known is not None:
            self.recorder.knows(proxy.node_id, known.watermark, is_news=True)
        current = self.publisher.current
        if current is not None:
            self._last[proxy.node_id] = current
        return current
