"""Traces: nothing without a collector; with one, a span for each task, and errors told as such."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from tasks.telemetry.spans import Spans
from tasks.telemetry.tracing import spans_for

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Iterator[Spans]:
    made = Spans(SimpleSpanProcessor(exporter))
    yield made
    made.close()


def finished(exporter: InMemorySpanExporter) -> ReadableSpan:
    (span,) = exporter.get_finished_spans()
    return span


def trace_of(span: ReadableSpan) -> str:
    return f"{span.context.trace_id:032x}"


@pytest.mark.parametrize(
    ("answer", "status", "why"),
    [
        ({"ok": True, "result": {}}, StatusCode.UNSET, None),
        ({"ok": False, "error": {"message": "web has no revision v9"}}, StatusCode.ERROR, "web has no revision v9"),
        (ValueError("odd"), StatusCode.ERROR, "odd"),
        (None, StatusCode.UNSET, None),
    ],
)
def test_a_task_has_a_span_in_the_trace_of_its_message_that_says_how_it_ended(
    spans: Spans, exporter: InMemorySpanExporter, answer: object, status: StatusCode, why: str | None
) -> None:
    spans.begin_task("42", "rollway.scale", "deployment='web'", TRACEPARENT)
    assert (own := spans.traceparent()) is not None
    assert own.split("-")[1] == TRACEPARENT.split("-")[1]
    spans.end_task("42", answer, failed=isinstance(answer, Exception))
    span = finished(exporter)
    assert (span.name, trace_of(span)) == ("rollway.scale", TRACEPARENT.split("-")[1])
    assert (span.status.status_code, span.status.description) == (status, why)
    assert span.attributes == {"messaging.message.id": "42", "rollway.about": "deployment='web'"}
    assert spans.traceparent() is None, "what follows in this thread is of no trace"


def test_a_message_without_a_trace_begins_one_and_a_tick_has_none(spans: Spans, exporter: InMemorySpanExporter) -> None:
    spans.begin_task("1", None, "", None)
    spans.end_task("1", None, failed=False)
    spans.begin_task("2", "pending", "", None)
    spans.end_task("2", None, failed=False)
    assert finished(exporter).parent is None


@pytest.mark.parametrize("asked", [TRACEPARENT, None])
def test_a_step_is_linked_to_what_asked_for_its_rollout_where_that_is_known(
    spans: Spans, exporter: InMemorySpanExporter, asked: str | None
) -> None:
    facts = {"deployment": "web", "step": 2, "rollout": None, "reason": "the timeout has passed"}
    spans.step("step of deploying/provisioning", facts, 0.25, asked, bad=True)
    span = finished(exporter)
    linked = [f"{link.context.trace_id:032x}" for link in span.links]
    assert linked == ([TRACEPARENT.split("-")[1]] if asked else [])
    assert span.attributes == {
        "rollway.deployment": "web",
        "rollway.step": 2,
        "rollway.reason": "the timeout has passed",
    }
    assert (span.end_time or 0) - (span.start_time or 0) == 250_000_000
    assert span.status.status_code is StatusCode.ERROR


def test_without_a_collector_nothing_is_sent_and_no_span_is_made() -> None:
    assert spans_for({"OTEL_SERVICE_NAME": "web"}) is None
    code = "import sys, tasks.command_tasks, tasks.lifecycle; sys.exit('tasks.telemetry.spans' in sys.modules)"
    environment = {"REDIS_URL": "redis://nobody", "DATABASE_URL": "postgresql://nobody"}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_a_collector_without_the_extra_is_told_once_in_the_log() -> None:
    code = (
        "import sys; sys.modules['opentelemetry.sdk.resources'] = None\n"  # as where it is not installed
        "from tasks.telemetry.tracing import spans; print(spans(), spans())"
    )
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "None None"
    assert done.stdout.count("install rollway[opentelemetry]") == 1
