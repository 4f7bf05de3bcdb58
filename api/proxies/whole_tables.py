"""Proxies that take over whole tables, as Traefik does: each poll acknowledges the table of the poll before."""

from api.proxies.publisher import Published, Publisher
from api.proxies.recorder import Recorder
from db.proxies.acks import SeenProxy


class WholeTables:
    """Remembers the last table that each of them got."""

    def __init__(self, publisher: Publisher, recorder: Recorder) -> None:
        self._publisher = publisher
        self._recorder = recorder
        self._last: dict[str, Published] = {}

    async def poll(self, proxy: SeenProxy) -> Published | None:
        """Note that the proxy asks again; the table to give it, or None while there is none yet."""
        self._last = {node: last for node, last in self._last.items() if node in self._recorder.nodes}
        known = self._last.get(proxy.node_id)
        await self._recorder.hear(proxy)
        if known is not None:
            self._recorder.knows(proxy.node_id, known.watermark)
        current = self._publisher.current
        if current is not None:
            self._last[proxy.node_id] = current
        return current
