"""Processor time of other processes, finer than the ticks of 10 ms that `ps` and psutil read."""

import sys
import time
from collections.abc import Iterable
from contextlib import suppress

import psutil

_ALL_THREADS = 0b010
"""The kind of clock in the last three bits of a clock's number, as clock_getcpuclockid(3) of glibc makes it."""


def processor_seconds(process: psutil.Process) -> float:
    """Of its threads, also of those that have ended, and of every process below it.

    Linux tells what runs in nanoseconds, and what has ended and was waited for in ticks.
    """
    return _of_each([process, *process.children(recursive=True)])


def children_seconds(process: psutil.Process) -> float:
    """Of its children that run, without itself: of Postgres, the connections."""
    return _of_each(process.children())


def _of_each(processes: Iterable[psutil.Process]) -> float:
    spent = 0.0
    for process in processes:
        with suppress(psutil.Error, OSError):  # it has just ended, and its parent counts it
            spent += own_seconds(process) + sum(process.cpu_times()[2:4])
    return spent


def own_seconds(process: psutil.Process) -> float:
    """Of its threads, without any other process."""
    if sys.platform == "linux":
        return time.clock_gettime((~process.pid << 3) | _ALL_THREADS)
    return float(sum(process.cpu_times()[:2]))
