"""Proxies that take over whole tables, as Traefik does: each poll acknowledges the table of the poll before."""

from api.proxies.publisher import Published, Publisher
from api.proxies.recorder import Recorder
from db.proxies.acks import SeenProxy


class WholeTables:
    """Remembers what each of them was told last."""

    def __init__(self, publisher: Publisher, recorder: Recorder) -> None:
        self._publisher = publisher
        self._recorder = recorder
        self._told: dict[str, Published] = {}

    async def poll(self, proxy: SeenProxy) -> Published | None:
        """The proxy asks again; what to tell it, or None while there is no table yet."""
        self._told = {node: told for node, told in self._told.items() if node in self._recorder.nodes}
        known = self._told.get(proxy.node_id)
        await self._recorder.hear(proxy)
        if known is not None:
            self._recorder.knows(proxy.node_id, known.watermark)
        current = self._publisher.current
        if current is not None:
            self._told[proxy.node_id] = current
        return current
