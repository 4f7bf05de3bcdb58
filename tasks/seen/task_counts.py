"""Counts tasks by Celery's signals, in workers and beats."""

import time
from collections.abc import Mapping
from typing import Any

from celery import Task, signals

from tasks.seen.observed import (
    TASK_SECONDS,
    TASKS_ACTIVE,
    TASKS_FAILED,
    TASKS_RECEIVED,
    TASKS_SENT,
    TASKS_STARTED,
    TASKS_SUCCEEDED,
    WORKER_UP,
)


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
        """A message was published."""
        TASKS_SENT.labels(sender, self.hostname, routing_key).inc()

    def received(self, request: Any, **_: object) -> None:  # noqa: ANN401  (Celery's)
        """A worker has taken a message."""
        TASKS_RECEIVED.labels(request.name, self.hostname, _queue(request.delivery_info)).inc()

    def started(self, task_id: str, task: Task[..., Any], **_: object) -> None:
        """A thread begins it."""
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
        """The task raised."""
        queue = _queue(sender.request.delivery_info)
        TASKS_FAILED.labels(sender.name, self.hostname, queue, type(exception).__name__).inc()


def _queue(delivery_info: Mapping[str, Any] | None) -> str:
    return str((delivery_info or {}).get("routing_key") or "")
