"""The parts of the server for proxies, made once for each app."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Self

from sqlalchemy import Engine
from starlette.requests import Request

from api.fleet_metrics import FleetReader
from api.proxies.counters import CallersCounter, DemandReader
from api.proxies.envoy.streams import ProxyStreams
from api.proxies.key_opener import Opener
from api.proxies.measurer import Measurer
from api.proxies.polling import WholeTables
from api.proxies.proxy_auth import ProxyAccess
from api.proxies.publisher import Publisher
from api.proxies.pubsub import Notices
from api.proxies.recorder import Recorder
from api.proxies.resolver import Names
from api.proxies.server_metrics import Observed
from api.proxy_settings import ApiSettings


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of one app. They belong to the event loop that they are made in."""

    access: ProxyAccess
    publisher: Publisher
    recorder: Recorder
    streams: ProxyStreams
    whole_tables: WholeTables
    notices: Notices
    measurer: Measurer
    demand: DemandReader
    callers: CallersCounter
    names: Names
    observed: Observed
    fleet: FleetReader
    loop: asyncio.AbstractEventLoop

    @classmethod
    def put_together(cls, engine: Engine, redis_url: str, where: ApiSettings, on_release: Callable[[], None]) -> Self:
        """Make all parts, not working yet."""
        observed, names = Observed(), Names()
        recorder = Recorder(engine, observed, on_release)
        opener = Opener(where.certificate_key, where.tls_door)
        publisher = Publisher(engine, names, opener, observed, recorder.write_soon)
        return cls(
            access=ProxyAccess(observed, where.proxy_key),
            publisher=publisher,
            recorder=recorder,
            streams=ProxyStreams(publisher, recorder, observed),
            whole_tables=WholeTables(publisher, recorder),
            notices=Notices(redis_url, publisher.read_soon),
            measurer=Measurer(engine, publisher, observed, on_release),
            demand=DemandReader(engine, publisher),
            callers=CallersCounter(engine, recorder.presence),
            names=names,
            observed=observed,
            fleet=FleetReader(engine, redis_url),
            loop=asyncio.get_running_loop(),
        )

    @property
    def work(self) -> list[Coroutine[Any, Any, None]]:
        """The background work while the app serves."""
        measurements = self.measurer.run(), self.demand.run(), self.callers.run()
        names = self.names.run(self.publisher.read_soon)
        publisher = self.publisher.run(lambda: self.notices.fault is None)
        return [publisher, self.recorder.run(), self.notices.run(), *measurements, names]


def parts_of(request: Request) -> Parts:
    """The parts of the app that serves this request."""
    parts = request.app.state.parts
    assert isinstance(parts, Parts)  # noqa: S101  (narrows the type)
    return parts
