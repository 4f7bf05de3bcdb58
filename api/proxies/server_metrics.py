"""The metrics of the server for proxies itself."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics

# else each counter tells when it began, too: half as many samples again, which nobody asks for
disable_created_metrics()  # type: ignore[no-untyped-call]
_SECONDS = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Observed:
    """The metrics, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.table_age = Gauge(
            "rollway_traffic_table_age_seconds", "Since the table was last read from Postgres", registry=self.registry
        )
        self.tables = Counter(
            "rollway_traffic_tables", "Tables that differed from the one before", registry=self.registry
        )
        self.proxies_live = Gauge("rollway_proxies_live", "Proxies that this server tells", registry=self.registry)
        self.proxies_reporting = Gauge(
            "rollway_proxies_reporting",
            "Proxies that told what they have counted at the last look of a rollout",
            registry=self.registry,
        )
        self.streams = Gauge("rollway_proxy_streams", "Streams on which Envoys are told", registry=self.registry)
        self.refused = Counter(
            "rollway_refused_answers", "Answers that a proxy did not take over", registry=self.registry
        )
        self.strangers = Counter(
            "rollway_strangers_refused", "Requests without the token of their node id", registry=self.registry
        )
        self.failed_writes = Counter(
            "rollway_proxy_writes_failed",
            "Writes of acknowledgements that Postgres did not take",
            registry=self.registry,
        )
        self.drain_ack = Histogram(
            "rollway_drain_ack_seconds",
            "From the decision to drain or park a replica until the last live proxy has acknowledged it",
            buckets=_SECONDS,
            registry=self.registry,
        )
