"""The table as Prometheus' HTTP service discovery: every replica is a target with what it belongs to as labels."""

from typing import Any

from traffic.table import Service, TrafficTable, Upstream


def prometheus_targets(table: TrafficTable) -> list[dict[str, Any]]:
    """A target group for each replica: deployment, revision, route, status and traffic (live, preview, canary)."""
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
        for traffic, upstreams in (("live", service.live), ("preview", service.preview), ("canary", canary_of(service)))
        for upstream in upstreams
    ]


def canary_of(service: Service) -> tuple[Upstream, ...]:
    """The replicas that get a canary's share only."""
    return tuple(upstream for upstream in service.canary or () if upstream not in service.live)


def address_of(upstream: Upstream) -> str:
    """The replica's "ip:port"."""
    ip = f"[{upstream.ip}]" if ":" in upstream.ip else upstream.ip
    return f"{ip}:{upstream.port}"
