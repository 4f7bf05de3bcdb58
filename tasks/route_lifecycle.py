"""The task of all looks at routes: start, probe, stop and sweep replicas, read metrics, look at hosts."""

from collections.abc import Callable
from time import monotonic

from db.connection.engine import engine
from domain.model.events import member_of
from domain.replicas.events import ON_EACH_HOST, RouteLifecycleType
from domain.replicas.placement import EXTERNAL
from domain.words.errors import InvalidInputError
from tasks.app import app
from tasks.hosts.silent import ask_hosts, settle_routes
from tasks.redis.wake import route_key
from tasks.replicas.metrics import look_at_metrics
from tasks.settings import settings
from tasks.wire.queues import DO_ROUTE_TASK
from tasks.worker.composition import probe_pass, replicas_of, slots, stopping
from tasks.worker.connections import waker
from tasks.worker.installation import is_ours

PAUSE_SECONDS = 0.1
"""How long a start or a stop waits before it looks again, while something is on its way."""

Look = Callable[[], float | None]
"""Returns how many seconds later it is worth looking again, while something is still on its way."""


@app.task(name=DO_ROUTE_TASK)
def do_route_lifecycle(route_lifecycle_type: str, interval: float | None = None, host: str | None = None) -> None:
    """DoRouteLifecycle: make this look, again and again while something moves and the time is not up.

    Without `host`, a look that hosts make themselves is sent to each host that is up and has work for it.
    """
    kind = member_of(RouteLifecycleType, "route_lifecycle_type", route_lifecycle_type)
    _check_host(kind, host)
    key = route_key(kind, host)
    if interval is None:
        waker().arrived(key)
    elif not waker().first_of_interval(key, interval):
        return
    if kind in ON_EACH_HOST and host is None:
        ask_hosts(engine(), waker(), kind)
        return
    with slots().hold(key, key, single=True) as slot:
        if slot is None:
            return
        look, ends_at = LOOKS[kind](host or settings().host), monotonic() + settings().work_seconds
        while (pause := look()) and monotonic() < ends_at and slot.is_held and not stopping.wait(pause):
            pass


def _again(look: Callable[[], bool]) -> Look:
    return lambda: PAUSE_SECONDS if look() else None


def _check_host(kind: RouteLifecycleType, host: str | None) -> None:
    """A look for another host would find that no route expects the replicas here, and a sweep would end them all."""
    known = (None, settings().host) if kind is RouteLifecycleType.SWEEP else (None, settings().host, EXTERNAL)
    if host not in known:
        raise InvalidInputError(f"host: {host} is not this host, which is {settings().host}", field="host")


LOOKS: dict[RouteLifecycleType, Callable[[str], Look]] = {
    RouteLifecycleType.START: lambda host: _again(replicas_of(host).start),
    RouteLifecycleType.PROBE: lambda host: probe_pass(host).look,
    RouteLifecycleType.STOP: lambda host: _again(replicas_of(host).stop),
    RouteLifecycleType.SWEEP: lambda host: _again(lambda: is_ours() and replicas_of(host).sweep()),
    RouteLifecycleType.METRICS: lambda _: _again(lambda: look_at_metrics(engine(), waker())),
    RouteLifecycleType.HOSTS: lambda _: _again(
        lambda: settle_routes(engine(), waker(), settings().host_silence_seconds)
    ),
}
