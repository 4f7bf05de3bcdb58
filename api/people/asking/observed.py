"""Measurements that the server for people makes of itself."""

import prometheus_client
from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call]  # as everywhere: nobody asks when a counter began


class ObservedAsking:
    """The metrics, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.wrong_tokens = prometheus_client.Counter(
            "rollway_wrong_tokens",
            "Requests with a token, or a session, that is unknown, revoked or expired",
            registry=self.registry,
        )
