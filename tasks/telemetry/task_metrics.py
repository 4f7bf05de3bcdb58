"""What a worker or a beat measures of itself, and of tasks. A name that celery-exporter has too means the same here."""

import time
from collections.abc import Mapping
from typing import Any

from celery import Task, signals
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics

# else each counter tells when it began, too: half as many samples again, which nobody asks for
disable_created_metrics()  # type: ignore[no-untyped-call]
REGISTRY = CollectorRegistry()
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_TASK = ("name", "hostname", "queue_name")

ProcessCollector(registry=REGISTRY)

TASKS_SENT = Counter("celery_task_sent", "Messages of tasks that this process published", _TASK, registry=REGISTRY)
TASKS_RECEIVED = Counter("celery_task_received", "Tasks that this worker has received", _TASK, registry=REGISTRY)
TASKS_STARTED = Counter("celery_task_started", "Tasks that this worker has started", _TASK, registry=REGISTRY)
TASKS_SUCCEEDED = Counter("celery_task_succeeded", "Tasks that returned, refusals too", _TASK, registry=REGISTRY)
TASKS_FAILED = Counter("celery_task_failed", "Tasks that raised", (*_TASK, "exception"), registry=REGISTRY)
TASK_SECONDS = Histogram(
    "celery_task_runtime", "Seconds that tasks took that returned", _TASK, buckets=_SECONDS, registry=REGISTRY
)
TASKS_ACTIVE = Gauge("celery_worker_tasks_active", "Tasks that this worker is at now", ("hostname",), registry=REGISTRY)
WORKER_UP = Gauge("celery_worker_up", "1 while this worker takes tasks", ("hostname",), registry=REGISTRY)

TICKS_SKIPPED = Counter(
    "rollway_ticks_skipped", "Ticks that beat did not send, since nobody seems to read their queue", registry=REGISTRY
)
DECISIONS = Counter(
    "rollway_decisions", "Deployments decided, by handler and verdict", ("handler", "verdict"), registry=REGISTRY
)
WAVES = Counter("rollway_waves", "Decisions that created, promoted or drained routes", ("handler",), registry=REGISTRY)
ROUTES_CREATED = Counter("rollway_routes_created", "Routes that decisions created", registry=REGISTRY)
ROUTES_PROMOTED = Counter("rollway_routes_promoted", "Routes that decisions brought into traffic", registry=REGISTRY)
ROUTES_DRAINED = Counter("rollway_routes_drained", "Routes that decisions drained", registry=REGISTRY)
DECISION_LATENCY = Histogram(
    "rollway_decision_latency_seconds",
    "Of the deployment of a chunk that was due first: from then until the chunk was committed",
    ("handler",),
    buckets=_SECONDS,
    registry=REGISTRY,
)
CHUNK_SECONDS = Histogram(
    "rollway_chunk_seconds",
    "How long transactions of chunks took",
    ("handler",),
    buckets=_SECONDS,
    registry=REGISTRY,
)
CHUNKS_FAILED = Counter(
    "rollway_chunks_failed",
    "Chunks that Postgres refused; they are tried in halves",
    ("handler",),
    registry=REGISTRY,
)
WAKES_LOST = Counter("rollway_wakes_lost", "Wakes that Redis did not take; a tick does their work", registry=REGISTRY)
LOCKS_CONTENDED = Counter(
    "rollway_locks_contended", "Events that found no free slot and left a note", ("lock",), registry=REGISTRY
)
LOCKS_LOST = Counter("rollway_locks_lost", "Slots that ran out while their worker held them", registry=REGISTRY)
DRAINS_CUT = Counter(
    "rollway_drains_cut", "Replicas that were killed after their grace, with requests perhaps", registry=REGISTRY
)
IMPOSSIBLE_STATES = Counter(
    "rollway_impossible_states", "Impossible states that audits have found, each time again", registry=REGISTRY
)
HOME_FREE = Gauge("rollway_home_free_bytes", "Space on the file system of ROLLWAY_HOME that is free", registry=REGISTRY)
HOME_SIZE = Gauge("rollway_home_size_bytes", "Size of the file system of ROLLWAY_HOME", registry=REGISTRY)


class TaskCounts:
    """The counts of one process. `hostname`: how it calls itself, such as worker1@gpu-2."""

    def __init__(self, hostname: str) -> None:
        self.hostname = hostname
        self._began: dict[str, float] = {}

    def connect(self) -> None:
        """Count from now on, for as long as somebody keeps these counts."""
        signals.after_task_publish.connect(self.sent)
        signals.task_received.connect(self.received)
        signals.task_prerun.connect(self.started)
        signals.task_postrun.connect(self.ended)
        signals.task_failure.connect(self.failed)

    def up(self) -> None:
        """Say that this worker takes tasks."""
        WORKER_UP.labels(self.hostname).set(1)
        TASKS_ACTIVE.labels(self.hostname).set(0)

    def sent(self, sender: str, routing_key: str, **_: object) -> None:
        TASKS_SENT.labels(sender, self.hostname, routing_key).inc()

    def received(self, request: Any, **_: object) -> None:  # noqa: ANN401  (Celery's)
        """A worker has taken a message."""
        TASKS_RECEIVED.labels(request.name, self.hostname, _queue(request.delivery_info)).inc()

    def started(self, task_id: str, task: Task[..., Any], **_: object) -> None:
        self._began[task_id] = time.monotonic()
        TASKS_STARTED.labels(task.name, self.hostname, _queue(task.request.delivery_info)).inc()
        TASKS_ACTIVE.labels(self.hostname).inc()

    def ended(self, task_id: str, task: Task[..., Any], state: str, **_: object) -> None:
        """The task has returned or raised."""
        seconds = time.monotonic() - self._began.pop(task_id, time.monotonic())
        TASKS_ACTIVE.labels(self.hostname).dec()
        if state == "SUCCESS":
            labels = (task.name, self.hostname, _queue(task.request.delivery_info))
            TASKS_SUCCEEDED.labels(*labels).inc()
            TASK_SECONDS.labels(*labels).observe(seconds)

    def failed(self, sender: Task[..., Any], exception: BaseException, **_: object) -> None:
        queue = _queue(sender.request.delivery_info)
        TASKS_FAILED.labels(sender.name, self.hostname, queue, type(exception).__name__).inc()


def _queue(delivery_info: Mapping[str, Any] | None) -> str:
    return str((delivery_info or {}).get("routing_key") or "")
