"""The page about metrics."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.metrics import MetricWrapperBase

from api.fleet_metrics import InRedis, metrics_of
from api.people.auth import ObservedAsking
from api.proxies.server_metrics import Observed
from db.fleet_measures import FleetView
from tasks.telemetry.task_metrics import REGISTRY
from tools.reference.markdown import page, table

_NOTHING = FleetView(samples={}, ended=(), bounds=(), requests={}, told_queues=())

Row = tuple[str, str, tuple[str, ...], str]
"""Name as it is asked for, kind, labels, meaning."""


def metrics_page() -> str:
    """What docs/reference/metrics.md holds."""
    heads = ("metric", "kind", "labels", "what it says")
    return page(
        "Metrics",
        "How Prometheus reaches them: [watching.md](../watching.md). A histogram ends in `_bucket`, `_count`, `_sum`.",
        *(f"## {title}\n\n" + table(heads, map(_cells, rows)) for title, rows in metrics().items()),
    )


def metrics() -> dict[str, list[Row]]:
    """The metrics by where they are shown."""
    fleet = [
        (_shown(metric.name, metric.type), metric.type, tuple(getattr(metric, "_labelnames", ())), metric.documentation)
        for metric in metrics_of(_NOTHING, InRedis({}, {}, 0))
    ]
    return {
        "The fleet: `/metrics/fleet` of the server for proxies": fleet,
        "Each server for proxies: its `/metrics`": list(_rows(Observed().registry)),
        "The server for people: its `/metrics`": list(_rows(ObservedAsking().registry)),
        "Each worker and each beat: `/metrics` on its `ROLLWAY_METRICS_PORT`": list(_rows(REGISTRY)),
    }


def _rows(registry: CollectorRegistry) -> Iterable[Row]:
    for collector in registry._collector_to_names:  # noqa: SLF001  (there is no other way to one without samples)
        if isinstance(collector, MetricWrapperBase):
            for metric in collector.describe():
                yield _shown(metric.name, metric.type), metric.type, collector._labelnames, metric.documentation  # noqa: SLF001
        elif isinstance(collector, ProcessCollector):
            yield "process_*", "gauge", (), "Memory, processor time and open files of the process"


def _shown(name: str, kind: str) -> str:
    return f"{name}_total" if kind == "counter" else name


def _cells(row: Row) -> list[str]:
    name, kind, labels, meaning = row
    return [f"`{name}`", kind, ", ".join(f"`{label}`" for label in labels), meaning]
