"""Sends traces where OpenTelemetry's variables name a collector. Without one it costs nothing."""

import os
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from tasks.telemetry.spans import Spans

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""OpenTelemetry's own variables; it reads others, such as OTEL_SERVICE_NAME, by itself."""
_log = structlog.get_logger(__name__)


@cache
def spans() -> "Spans | None":
    """The spans of this process; None without a collector."""
    return spans_for(os.environ)


def spans_for(environment: Mapping[str, str]) -> "Spans | None":
    """New spans where the environment names a collector. The log says so where the extra is not installed."""
    if not any(environment.get(name) for name in ENDPOINTS):
        return None
    try:
        from tasks.telemetry.spans import Spans, exporting  # noqa: PLC0415  (an extra, which most installations do not have)
    except ImportError as error:
        _log.warning("no traces are sent: install rollway[opentelemetry]", why=str(error))
        return None
    return Spans(exporting())


def traceparent_of(header: str | None) -> str | None:
    """The parent for the next span of the running task: from its message, else the task's own span."""
    if header is not None:
        return header
    tracer = spans()
    return tracer.traceparent() if tracer else None
