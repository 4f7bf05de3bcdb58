"""Spans of OpenTelemetry: of each task that Flower shows, and of each step of a rollout, linked to its request.

another service    ──span──▶ message with traceparent
worker                       └─ rollway.activate_revision       rollouts.traceparent
any worker                      deploying/provisioning · · · · · · · ·▶ link
"""

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

if TYPE_CHECKING:
    from contextvars import Token

_TRACE_CONTEXT = TraceContextTextMapPropagator()
_NANOSECONDS = 1_000_000_000


def exporting() -> SpanProcessor:
    """Sends spans from a thread of its own, in batches, to where OpenTelemetry's variables say."""
    return BatchSpanProcessor(OTLPSpanExporter())


class Spans:
    """The spans of one process."""

    def __init__(self, processor: SpanProcessor) -> None:
        attributes = {} if os.environ.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: "rollway"}
        self._provider = TracerProvider(resource=Resource.create(attributes))
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("rollway")
        self._running: dict[str, tuple[Span, Token[Context]]] = {}

    def begin_task(self, task_id: str, name: str | None, about: str, traceparent: str | None) -> None:
        """The task continues with the trace of its message. One without a name, a tick, has no span."""
        if name is None:
            return
        attributes = {"messaging.message.id": task_id, "rollway.about": about}
        span = self._tracer.start_span(name, _context(traceparent), SpanKind.CONSUMER, attributes)
        self._running[task_id] = span, attach(trace.set_span_in_context(span))

    def end_task(self, task_id: str, answer: object, *, failed: bool) -> None:
        """An error, where it raised or where the command was refused."""
        if task_id not in self._running:
            return
        span, token = self._running.pop(task_id)
        detach(token)
        if failed:
            span.set_status(Status(StatusCode.ERROR, str(answer)))
        elif isinstance(answer, dict) and answer.get("ok") is False:
            span.set_status(Status(StatusCode.ERROR, answer["error"]["message"]))
        span.end()

    def step(
        self, name: str, facts: Mapping[str, object], seconds: float, traceparent: str | None, *, bad: bool
    ) -> None:
        """A step that took these seconds and has just ended. `traceparent`: of the request that began its rollout."""
        began = trace.get_current_span(_context(traceparent)).get_span_context()
        ended_at = time.time_ns()
        span = self._tracer.start_span(
            name,
            attributes={f"rollway.{key}": _plain(value) for key, value in facts.items() if value is not None},
            links=[Link(began)] if began.is_valid else [],
            start_time=ended_at - round(seconds * _NANOSECONDS),
        )
        if bad:
            span.set_status(Status(StatusCode.ERROR, str(facts.get("reason"))))
        span.end(ended_at)

    def traceparent(self) -> str | None:
        carrier: dict[str, str] = {}
        _TRACE_CONTEXT.inject(carrier)
        return carrier.get("traceparent")

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()


def _context(traceparent: str | None) -> Context:
    """The trace of a message; without one a new trace begins."""
    return _TRACE_CONTEXT.extract({"traceparent": traceparent} if traceparent else {}, Context())


def _plain(value: object) -> Any:  # noqa: ANN401  (what an attribute may be)
    return value if isinstance(value, str | int | float) else str(value)
