"""The table as Prometheus' HTTP service discovery: every replica is a target with what it belongs to as labels."""

from typing import Any

from traffic.table import TrafficTable, Upstream


def prometheus_targets(table: TrafficTable) -> list[dict[str, Any]]:
    """A target group for each replica, labelled deployment, revision, route, status and traffic (live or preview)."""
    return [
        {
            "targets": [address_of(upstream)],
            "labels": {
                "deployment": service.name,
                "revision": upstream.revision,
                "route": str(upstream.route_id),
                "status": upstream.status.value,
                "traffic": traffic,
            },
        }
        for service in table.services
        for traffic, upstreams in (("live", service.live), ("preview", service.preview))
        for upstream in upstreams
    ]


def address_of(upstream: Upstream) -> str:
    """The replica's "ip:port"."""
    ip = f"[{upstream.ip}]" if ":" in upstream.ip else upstream.ip
    return f"{ip}:{upstream.port}"
