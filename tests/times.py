"""What a run of tests costs: its slowest tests, and processor time by folder, printed at its end."""

from __future__ import annotations

import math
import resource
from collections import defaultdict
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

_SHOWN = 10
_LEAST_SECONDS = 1.0
_spent = {"until": 0.0, "elsewhere": 0.0}
_seconds: defaultdict[str, float] = defaultdict(float)
_processor: defaultdict[str, float] = defaultdict(float)


def _processor_seconds() -> float:
    """Of this process and of those that it started and has waited for."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages) + _spent["elsewhere"]


def add(seconds: float) -> None:
    """Count a process that this one has not waited for itself."""
    _spent["elsewhere"] += seconds


def pytest_runtest_logstart() -> None:
    """Begin to count."""
    _spent["until"] = _processor_seconds()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """The servers of the run end with its last test, which has not spent what they did."""
    if nextitem is None:
        _spent["until"] = math.inf


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, None]:
    """Note what this part of a test took; with several processes it travels with the report."""
    outcome = yield
    now = _processor_seconds()
    outcome.get_result().processor = max(0.0, now - _spent["until"])
    _spent["until"] = now


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up."""
    _seconds[report.nodeid] += report.duration
    _processor[_folder(report.nodeid)] += getattr(report, "processor", 0.0)


def _folder(nodeid: str) -> str:
    return "/".join(PurePath(nodeid.partition("::")[0]).parts[:3][: 3 if nodeid.count("/") > 2 else 2])


def _most_first(spent: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(spent.items(), key=lambda item: item[1], reverse=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print both tables, unless all of it took no time."""
    if sum(_seconds.values()) < _LEAST_SECONDS:
        return
    terminalreporter.section("time")
    for nodeid, seconds in _most_first(_seconds)[:_SHOWN]:
        terminalreporter.write_line(f"{seconds:7.1f} s  {nodeid}")
    terminalreporter.write_line("")
    counted = sum(_processor.values())
    for folder, seconds in _most_first(_processor):
        if seconds >= _LEAST_SECONDS:
            terminalreporter.write_line(f"{seconds:7.1f} s of a processor  {folder}")
    whole = _processor_seconds()
    if whole > counted:
        terminalreporter.write_line(
            f"{whole - counted:7.1f} s of a processor  servers of the run, and what collects it"
        )
    terminalreporter.write_line(f"{max(whole, counted):7.1f} s of a processor in all")
