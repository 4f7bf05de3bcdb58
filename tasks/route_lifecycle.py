"""The task of all looks at routes: start, probe, stop and sweep replicas, read metrics, look at hosts."""

from db.connection.transactions import engine
from domain.model.lifecycle_events import ON_EACH_HOST, RouteLifecycleType, member_of
from domain.replicas.host_choice import EXTERNAL
from domain.text.errors import InvalidInputError
from tasks.app import app
from tasks.hosts.host_timeouts import ask_hosts
from tasks.messaging.queues import DO_ROUTE_TASK
from tasks.redis.wake import route_key
from tasks.task_settings import settings
from tasks.worker.connections import waker
from tasks.worker.route_looks import look_at


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
    look_at(kind, host)


def _check_host(kind: RouteLifecycleType, host: str | None) -> None:
    """A look for another host would find that no route expects the replicas here, and a sweep would end them all."""
    hosts = (None, settings().host) if kind is RouteLifecycleType.SWEEP else (None, settings().host, EXTERNAL)
    if host not in hosts:
        raise InvalidInputError(f"host: {host} is not this host, which is {settings().host}", field="host")
