"""Routes have events of their own: start their replicas, probe them, stop them, sweep up, and read their metrics."""

from collections.abc import Callable
from contextlib import ExitStack
from time import monotonic

from db.engine import engine
from domain.errors import InvalidInputError
from domain.route_events import RouteLifecycleType
from tasks.app import app
from tasks.composition import redis_client, runtimes, settings, slots, stopping, waker
from tasks.metrics import look_at_metrics
from tasks.probing import ProbePass
from tasks.replicas import start_replicas, stop_replicas, sweep_replicas
from tasks.schedule import DO_ROUTE_TASK
from tasks.wake import route_key

PAUSE_SECONDS = 0.1
"""Between two looks while something is on its way."""

Look = Callable[[], bool]


@app.task(name=DO_ROUTE_TASK)
def do_route_lifecycle(route_lifecycle_type: str, interval: float | None = None) -> None:
    """DoRouteLifecycle: one kind of look at routes, repeated while something moves and the time is not up."""
    kind = _parse(route_lifecycle_type)
    if interval is None:
        waker().arrived(route_key(kind))
    elif not waker().first_of_interval(route_key(kind), interval):
        return
    with slots().hold(route_key(kind), route_key(kind)) as slot, ExitStack() as stack:
        if slot is None:
            return
        look, ends_at = LOOKS[kind](stack), monotonic() + settings().work_seconds
        while look() and monotonic() < ends_at and slot.is_held and not stopping.wait(PAUSE_SECONDS):
            pass


def _start(_: ExitStack) -> Look:
    return lambda: start_replicas(engine(), runtimes(), waker())


def _probe(stack: ExitStack) -> Look:
    return stack.enter_context(ProbePass(engine(), runtimes(), waker(), redis_client())).look


def _stop(_: ExitStack) -> Look:
    return lambda: stop_replicas(engine(), runtimes(), waker())


def _sweep(_: ExitStack) -> Look:
    return lambda: sweep_replicas(engine(), runtimes())


def _metrics(_: ExitStack) -> Look:
    return lambda: look_at_metrics(engine(), waker())


LOOKS: dict[RouteLifecycleType, Callable[[ExitStack], Look]] = {
    RouteLifecycleType.START: _start,
    RouteLifecycleType.PROBE: _probe,
    RouteLifecycleType.STOP: _stop,
    RouteLifecycleType.SWEEP: _sweep,
    RouteLifecycleType.METRICS: _metrics,
}
"""Each look says whether something is still on its way, so that it is worth looking again at once."""


def _parse(kind: str) -> RouteLifecycleType:
    try:
        return RouteLifecycleType(kind)
    except ValueError:
        raise InvalidInputError(
            f"route_lifecycle_type must be one of {', '.join(RouteLifecycleType)}, not {kind!r}",
            field="route_lifecycle_type",
        ) from None
