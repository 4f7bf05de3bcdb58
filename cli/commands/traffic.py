"""`rollway traffic`, `proxies`, `hosts` and `forget-host`: which requests go where, and where replicas run."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.text import Text

from cli.options import Actor, AsJson, Reason, RequestId
from cli.output import ago, columns, print_json, printer, roughly
from cli.sending import send_command
from cli.servers import Reader, database_errors, find_servers
from cli.show.status import route_colour, short_id
from db.views.hosts import HostView, all_hosts
from domain.commands import ForgetHost
from domain.replicas.clocks import WARNED_ABOVE_SECONDS
from traffic.envoy_routes import PREVIEW_HEADER
from traffic.table import Service, TrafficTable, Upstream, derive_table

if TYPE_CHECKING:
    from psycopg import Connection

    from db.proxies.acks import ProxyView

T = TypeVar("T")


def traffic(*, as_json: AsJson = False) -> None:
    """Show the table as proxies get it: where deployments are reached, and which replicas take their requests.

    live: requests go there; preview: healthy replicas of a revision that is being rolled out and has no traffic yet.
    """
    table = _read(_table)
    if as_json:
        return print_json({"services": table.services, "faults": table.faults})
    if not table.services:
        return printer().print("No deployments yet; 'rollway apply -f examples/web.yaml' makes one.")
    shown = columns("NAME", "TRAFFIC", "ADDRESS", "STATUS", "REVISION", "ROUTE", "REACHED AS")
    for service in table.services:
        for row in _rows(service):
            shown.add_row(*row)
    printer().print(shown, soft_wrap=False)
    for fault in table.faults:
        printer().print(f"! {fault}", style="yellow")
    return None


def proxies(*, as_json: AsJson = False) -> None:
    """Show the proxies that were heard of, and what each has acknowledged.

    A replica that leaves is stopped only when every live proxy has acknowledged a table without it; DRAINS counts
    those that wait for this proxy. A proxy that has been silent for its time counts no more. Where two proxies use one
    node id, a replica may be stopped that one of them still sends requests to: give each an id of its own.
    """
    found = _read(_proxies)
    if as_json:
        return print_json([asdict(proxy) for proxy in found])
    if not found:
        return printer().print(
            "No proxy has been heard of; 'rollway up' starts one, 'rollway proxies --help' says more."
        )
    shown = columns("NODE", "KIND", "STATE", "ACKNOWLEDGED", "WHEN", "SEEN", "DRAINS")
    for proxy in found:
        shown.add_row(
            proxy.node_id,
            proxy.kind,
            _proxy_state(proxy),
            proxy.acked_version or "-",
            "-" if proxy.acked_seconds_ago is None else f"{_seconds(proxy.acked_seconds_ago)} ago",
            f"{_seconds(proxy.seen_seconds_ago)} ago",
            str(proxy.drains_waiting),
        )
    return printer().print(shown, soft_wrap=False)


def hosts(*, as_json: AsJson = False) -> None:
    """Show the hosts that workers run on, and their replicas.

    A host is up while a worker on it gives signs of life. The replicas of one that is down are replaced elsewhere.
    CLOCK: by how much its clock differs from PostgreSQL's. A host that is off by more than a minute gets no new
    replicas while another is not. CONTRACT: what its worker reads and writes; an upgrade of Rollway may count it up.
    """
    with Reader() as reader:
        found = reader.read(all_hosts)
    if as_json:
        return print_json([{**asdict(host), "state": "down" if host.down_since else "up"} for host in found])
    if not found:
        return printer().print("No host is known yet: does a worker run? 'rollway up' starts some.")
    shown = columns("HOST", "ADDRESS", "STATE", "SEEN", "CLOCK", "CONTRACT", "REPLICAS")
    for host in found:
        counts = ", ".join(f"{count} {status}" for status, count in sorted(host.replicas.items())) or "none"
        seen = ago(host.last_seen_at, host.now)
        shown.add_row(host.name, host.address, _state(host), seen, _clock(host), str(host.contract), counts)
    return printer().print(shown, soft_wrap=False)


def forget_host(
    *,
    host: Annotated[str, typer.Argument(metavar="HOST", help="Name of the host.", show_default=False)],
    reason: Reason = "",
    actor: Actor,
    request_id: RequestId,
    as_json: AsJson = False,
) -> None:
    """Forget a host that is down and never comes back. Its replicas count as stopped."""
    find_servers()
    result = send_command(ForgetHost, host=host, reason=reason, actor=actor, request_id=request_id)
    printer(quiet=as_json).print(f"{host} is forgotten")
    if as_json:
        print_json(result)


def _read(view: "Callable[[Connection], T]") -> T:
    from db.engine import engine, in_transaction  # noqa: PLC0415  (SQLAlchemy takes half a second)

    find_servers()
    with database_errors():
        return in_transaction(engine(), view)


def _table(connection: "Connection") -> TrafficTable:
    from db.proxies.table import read_traffic  # noqa: PLC0415

    return derive_table(read_traffic(connection))


def _proxies(connection: "Connection") -> Sequence["ProxyView"]:
    from db.proxies.acks import list_proxies  # noqa: PLC0415

    return list_proxies(connection)


def _rows(service: Service) -> Iterator[tuple[str | Text, ...]]:
    """The first row of each kind says where it is reached."""
    prefixes = [prefix.value if prefix.strip else f"{prefix.value} (passed on)" for prefix in service.prefixes]
    live = ", ".join((*service.hosts, *prefixes)) or "nowhere"
    preview = ", ".join((*service.preview_hosts, f"header {PREVIEW_HEADER}"))
    yield from _upstreams(service.name, "live", service.live, live)
    if service.preview:
        yield from _upstreams("", "preview", service.preview, preview)


def _upstreams(name: str, kind: str, upstreams: tuple[Upstream, ...], reached: str) -> Iterator[tuple[str | Text, ...]]:
    if not upstreams:
        yield name, kind, "-", Text("no replica", "yellow"), "-", "-", reached
    for number, upstream in enumerate(upstreams):
        status = Text(str(upstream.status), route_colour(upstream.status))
        first = (name, kind) if number == 0 else ("", "")
        address = f"[{upstream.ip}]:{upstream.port}" if ":" in upstream.ip else f"{upstream.ip}:{upstream.port}"
        yield *first, address, status, upstream.revision, short_id(upstream.route_id), "" if number else reached


def _proxy_state(proxy: "ProxyView") -> Text:
    if not proxy.is_live:
        return Text("silent", "yellow")
    return Text("two with this id", "red") if proxy.is_doubled else Text("live", "green")


def _state(host: HostView) -> Text:
    if host.down_since is None:
        return Text("up", "green")
    return Text(f"down for {roughly(host.now - host.down_since)}", "red")


def _clock(host: HostView) -> Text:
    offset = host.clock_offset_seconds
    if abs(offset) <= WARNED_ABOVE_SECONDS:
        return Text("right", "green")
    return Text(f"{_seconds(abs(offset))} {'ahead' if offset > 0 else 'behind'}", "yellow")


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else roughly(timedelta(seconds=seconds))  # noqa: PLR2004  (with a decimal)
