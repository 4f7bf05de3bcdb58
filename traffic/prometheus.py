"""The table as Prometheus' HTTP service discovery: every replica is a target with what it belongs to as labels."""

from typing import Any

from traffic.table import TrafficTable, Upstream


def prometheus_targets(table: TrafficTable) -> list[dict[str, Any]]:
    """A target group for each replica. Labels: deployment, revision, route, status, and traffic: live or preview."""
    return [
        {
            "targets": [address_of(one)],
            "labels": {
                "deployment": service.name,
                "revision": one.revision,
                "route": str(one.route_id),
                "status": one.status.value,
                "traffic": traffic,
            },
        }
        for service in table.services
        for traffic, upstreams in (("live", service.live), ("preview", service.preview))
        for one in upstreams
    ]


def address_of(one: Upstream) -> str:
    """Its address as "ip:port"."""
    return f"[{one.ip}]:{one.port}" if ":" in one.ip else f"{one.ip}:{one.port}"
