"""The looks at routes that this worker makes, each again and again while something moves and the time is not up."""

from collections.abc import Callable
from time import monotonic

from db.connection.transactions import engine
from domain.model.lifecycle_events import RouteLifecycleType
from tasks.hosts.host_timeouts import settle_routes
from tasks.redis.wake import route_key
from tasks.replicas.metric_scrapes import look_at_metrics
from tasks.task_settings import settings
from tasks.worker.composition import probe_pass, replicas_of, slots, stopping
from tasks.worker.connections import waker
from tasks.worker.installation import is_ours

PAUSE_SECONDS = 0.1
"""The seconds before a start or a stop looks again, while something is on its way."""

Look = Callable[[], float | None]
"""Returns how many seconds later it is worth looking again, while something is still on its way."""


def look_at(kind: RouteLifecycleType, host: str | None = None) -> None:
    """Make this look, unless another worker makes it, which does it once more then. `host`: None: this one, or all."""
    key = route_key(kind, host)
    with slots().hold(key, key, single=True) as slot:
        if slot is None:
            return
        look, ends_at = LOOKS[kind](host or settings().host), monotonic() + settings().work_seconds
        while (pause := look()) and monotonic() < ends_at and slot.is_held and not stopping.wait(pause):
            pass


def _again(look: Callable[[], bool]) -> Look:
    return lambda: PAUSE_SECONDS if look() else None


LOOKS: dict[RouteLifecycleType, Callable[[str], Look]] = {
    RouteLifecycleType.START: lambda host: _again(lambda: replicas_of(host).prepare() | replicas_of(host).start()),
    RouteLifecycleType.PROBE: lambda host: probe_pass(host).look,
    RouteLifecycleType.STOP: lambda host: _again(replicas_of(host).stop),
    RouteLifecycleType.SWEEP: lambda host: _again(lambda: is_ours() and replicas_of(host).sweep()),
    RouteLifecycleType.METRICS: lambda _: _again(lambda: look_at_metrics(engine(), waker())),
    RouteLifecycleType.HOSTS: lambda _: _again(
        lambda: settle_routes(engine(), waker(), settings().host_silence_seconds)
    ),
}
