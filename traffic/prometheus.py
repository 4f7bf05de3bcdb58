"""The table as Prometheus' HTTP service discovery: a target for each replica, with labels."""

from collections.abc import Iterable
from typing import Any

from traffic.routing_table import Service, TrafficTable, Upstream


def prometheus_targets(table: TrafficTable) -> list[dict[str, Any]]:
    """A target group for each replica: deployment, revision, route, status, traffic; by TLS where it speaks it."""
    return [
        {
            "targets": [address_of(upstream)],
            "labels": {
                "deployment": service.name,
                "revision": upstream.revision,
                "route": str(upstream.route_id),
                "status": upstream.status.value,
                "traffic": traffic,
                **({"__scheme__": "https"} if service.wires[upstream.wire].tls else {}),
            },
        }
        for service in table.services
        for traffic, upstreams in _by_traffic(service).items()
        for upstream in upstreams
    ]


def _by_traffic(service: Service) -> dict[str, Iterable[Upstream]]:
    """Sort by whether a replica is live, in preview, or has only the share of a canary or its baseline."""
    shares = {"canary": service.canary, "baseline": service.baseline}
    return {"live": service.live, "preview": service.preview} | {
        traffic: [upstream for upstream in upstreams or () if upstream not in service.live]
        for traffic, upstreams in shares.items()
    }


def address_of(upstream: Upstream) -> str:
    """The replica's "ip:port"."""
    ip = f"[{upstream.ip}]" if ":" in upstream.ip else upstream.ip
    return f"{ip}:{upstream.port}"
