"""`rollway traffic` and `proxies`: where requests go, and which proxies know it."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Annotated

import typer
from rich.text import Text

from cli.client import Reader
from cli.commands.deployments.settings_commands import change_traffic
from cli.completion import deployments_offered
from cli.options import AsJson
from cli.sending import Asker, asking
from cli.show.status import route_colour, short_id
from cli.terminal.exits import ExitCode, UsageError
from cli.terminal.output import columns, in_seconds, print_json, printer
from db.proxies.acks import ProxyView
from domain.installation.tokens import NotAllowedError
from domain.text.errors import DeploymentNotFoundError
from traffic.envoy.envoy_names import PREVIEW_HEADER
from traffic.explanation import AskedFor, Explanation, explain
from traffic.prometheus import address_of
from traffic.routing_table import Service, TrafficTable, Upstream

_Deployment = Annotated[
    str | None,
    typer.Argument(metavar="[DEPLOYMENT]", help="Only this one.", autocompletion=deployments_offered),
]
_Set = Annotated[
    str | None, typer.Option("--set", metavar="FILE|YAML", help="Where it is reached from now on.", show_default=False)
]
_Explain = Annotated[
    str | None, typer.Option("--explain", metavar="URL", help="Explain where a request to this URL goes.")
]
_Reset = Annotated[bool, typer.Option("--reset", help="Where a new deployment is reached.")]


@asking
def traffic(
    *,
    deployment: _Deployment = None,
    values: _Set = None,
    reset: _Reset = False,
    explain: _Explain = None,
    asker: Asker,
) -> None:
    """Show the table as proxies get it, or set a part of it: where a deployment is reached.

    live: requests go there; preview: healthy replicas of a revision that is being rolled out and has no traffic yet.

    --set takes the fields of 'traffic' in the file of 'rollway apply', and replaces all of them. --explain takes a URL
    as callers have it, and follows a request for it through the table; exit code 1 when a proxy would refuse it.
    """
    if explain is not None:
        if values is not None or reset:
            raise UsageError("--explain changes nothing: give it without --set and --reset")
        return _explain(deployment, explain, as_json=asker.as_json)
    if values is not None or reset:
        if deployment is None or (values is not None and reset):
            raise UsageError("name the deployment, and give either --set or --reset")
        return change_traffic(asker, deployment, values)
    with Reader() as reader:
        routing = reader.view(TrafficTable, "/v1/traffic")
    return _show_traffic(_of(routing, deployment), as_json=asker.as_json)


def _explain(deployment: str | None, url: str, *, as_json: bool) -> None:
    request = AskedFor.parse(url)
    with Reader() as reader:
        explanation = explain(reader.view(TrafficTable, "/v1/traffic"), request)
        proxy_lines = _who_knows(reader) if explanation.replicas else ()
    if as_json:
        print_json({"deployment": explanation.service, "said": explanation.said, "replicas": explanation.replicas})
    else:
        _show_explanation(explanation, proxy_lines)
    if not explanation.replicas or (deployment is not None and deployment != explanation.service):
        raise typer.Exit(ExitCode.REFUSED)


def _show_explanation(explanation: Explanation, proxy_lines: Sequence[str]) -> None:
    table = columns("", "")
    for each in explanation.said:
        table.add_row(each.about, each.says)
    for upstream in explanation.replicas:
        status = Text(f"{upstream.status} {upstream.revision} at {address_of(upstream)}", route_colour(upstream.status))
        table.add_row(short_id(upstream.route_id), status)
    for line in proxy_lines:
        table.add_row("proxy", line)
    printer().print(table, soft_wrap=False)


def _who_knows(reader: Reader) -> list[str]:
    """The live proxies, any of which a caller may have come by; empty for a token that may not see them."""
    with suppress(NotAllowedError):
        proxies = reader.views(ProxyView, "/v1/proxies")
        return [f"{proxy.node_id}: {_last_acknowledged(proxy)}" for proxy in proxies if proxy.is_live]
    return []


def _last_acknowledged(proxy: ProxyView) -> str:
    if proxy.acked_seconds_ago is None:
        return "it has acknowledged no table yet"
    return f"its newest table is {in_seconds(proxy.acked_seconds_ago)} old"


def _of(table: TrafficTable, deployment: str | None) -> TrafficTable:
    """Only that deployment. Raises DeploymentNotFoundError."""
    if deployment is None:
        return table
    services = tuple(service for service in table.services if service.name == deployment)
    if not services:
        message = f"no deployment called {deployment} is reached; 'rollway traffic' lists those that are"
        raise DeploymentNotFoundError(message, deployment=deployment)
    return replace(table, services=services)


def _show_traffic(table: TrafficTable, *, as_json: bool) -> None:
    if as_json:
        return print_json({"services": table.services, "faults": table.faults})
    if not table.services:
        return printer().print("No deployments yet; 'rollway init' makes one.")
    rows = columns("NAME", "TRAFFIC", "ADDRESS", "STATUS", "REVISION", "ROUTE", "REACHED AS")
    for service in table.services:
        for row in _rows(service):
            rows.add_row(*row)
    printer().print(rows, soft_wrap=False)
    for fault in table.faults:
        printer().print(f"! {fault}", style="yellow")
    return None


def proxies(*, as_json: AsJson = False) -> None:
    """List known proxies, and what each has acknowledged.

    A replica that leaves is stopped only when every live proxy has acknowledged a table without it; DRAINS counts
    those that wait for this proxy. A proxy that is silent for its time is ignored. Where two proxies use one
    node id, a replica may be stopped that one of them still sends requests to: give each an id of its own.
    """
    with Reader() as reader:
        views = reader.views(ProxyView, "/v1/proxies")
    if as_json:
        return print_json([asdict(proxy) for proxy in views])
    if not views:
        return printer().print("No proxy is known; 'rollway up' starts one, 'rollway proxies --help' says more.")
    table = columns("NODE", "KIND", "STATE", "ACKNOWLEDGED", "WHEN", "SEEN", "DRAINS")
    for proxy in views:
        table.add_row(
            proxy.node_id,
            proxy.kind,
            _proxy_state(proxy),
            proxy.acked_version or "-",
            "-" if proxy.acked_seconds_ago is None else f"{in_seconds(proxy.acked_seconds_ago)} ago",
            f"{in_seconds(proxy.seen_seconds_ago)} ago",
            str(proxy.drains_waiting),
        )
    return printer().print(table, soft_wrap=False)


def _rows(service: Service) -> Iterator[tuple[str | Text, ...]]:
    """The rows of a deployment; the first of each kind has the address."""
    prefixes = [prefix.value if prefix.strip else f"{prefix.value} (passed on)" for prefix in service.prefixes]
    live = ", ".join((*service.hosts, *prefixes)) or "nowhere"
    preview = ", ".join((*service.preview_hosts, f"header {PREVIEW_HEADER}"))
    yield from _upstreams(service.name, "live", service.live, live)
    if service.weight and service.canary:
        yield from _upstreams("", "canary", service.canary, f"{service.weight / 100:g} % of the requests")
    if service.baseline_weight and service.baseline:
        as_much = f"{service.baseline_weight / 100:g} % of the requests"
        yield from _upstreams("", "baseline", service.baseline, as_much)
    if service.mirrored and service.canary:
        address = f"copies of {service.mirrored / 100:g} % of the requests that only read"
        yield from _upstreams("", "mirror", service.canary, address)
    if service.preview:
        yield from _upstreams("", "preview", service.preview, preview)


def _upstreams(name: str, kind: str, upstreams: tuple[Upstream, ...], address: str) -> Iterator[tuple[str | Text, ...]]:
    if not upstreams:
        yield name, kind, "-", Text("no replica", "yellow"), "-", "-", address
    for number, upstream in enumerate(upstreams):
        status = Text(str(upstream.status), route_colour(upstream.status))
        first = (name, kind) if number == 0 else ("", "")
        where = "" if number else address
        yield *first, address_of(upstream), status, upstream.revision, short_id(upstream.route_id), where


def _proxy_state(proxy: ProxyView) -> Text:
    if not proxy.is_live:
        return Text("silent", "yellow")
    return Text("two with this id", "red") if proxy.is_doubled else Text("live", "green")
