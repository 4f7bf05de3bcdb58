"""A worker's loop is woken when one of its threads becomes free.

With `worker_disable_prefetch` the loop takes no message while every thread has a task. It looks again when it is woken,
and Celery 5.7.0 wakes it when a task begins, but not when one ends, unless it has a task event to send just then. So
without task events (`-E`) each thread would stand idle until some timer comes round, half a second on average.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from celery import bootsteps
from celery.concurrency.thread import TaskPool

T = TypeVar("T")


class _WakingExecutor(ThreadPoolExecutor):
    """Calls `wake` whenever a thread has done its task and everything that Celery does after it."""

    def __init__(self, threads: int, wake: Callable[[], object]) -> None:
        super().__init__(max_workers=threads)
        self._wake = wake

    def submit(self, work: Callable[..., T], /, *arguments: object, **more: object) -> Future[T]:
        future = super().submit(work, *arguments, **more)
        future.add_done_callback(lambda _: self._wake())
        return future


class WakeWhenFree(bootsteps.Step):
    """Gives the worker's pool of threads that executor, before it has a thread."""

    requires = ("celery.worker.components:Hub", "celery.worker.components:Pool")

    def create(self, worker: Any) -> None:  # noqa: ANN401  (Celery's)
        """Called once, when the worker is put together."""
        if worker.hub is not None and isinstance(worker.pool, TaskPool):
            wake = worker.hub.call_soon
            worker.pool.executor = _WakingExecutor(worker.pool.limit, lambda: wake(_look_again))


def _look_again() -> None:
    """Nothing: the loop only has to turn once to see that a thread is free."""
