"""A real worker sends its spans to a collector, each step linked to the trace that asked for the rollout."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.proxies.own_servers import OwnServer, taking_requests
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
"""Of the service that asks, as its own OpenTelemetry would write them into the headers of its message."""


class Collector:
    """Takes what the OTLP exporter sends."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    named = {found.key: found.value.string_value for found in resource.resource.attributes}
                    collector.services.add(named["service.name"])
                    collector.spans += [span for scope in resource.scope_spans for span in scope.spans]
                self.send_response(200)
                self.end_headers()

        self.server = OwnServer(Handler)
        self.url = f"http://{self.server.address}"

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    with made.server, taking_requests(made.server):
        yield made


def test_from_the_service_that_asked_one_finds_every_step_of_its_rollout(fleet: Fleet, collector: Collector) -> None:
    fleet.start_workers("worker", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_BSP_SCHEDULE_DELAY="100")
    fleet.deploy_first(replicas=1)
    fleet.add_revision("web", "v2")
    payload = {"request_id": "traced", "deployment": "web", "revision": "v2"}
    headers = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
    fleet.producer.send_task("rollway.activate_revision", kwargs={"payload": payload}, headers=headers)
    fleet.wait_until_ready("web", "v2", 1)

    (rollout,) = fleet.rollouts("web")
    wanted = len(fleet.steps("web"))
    steps = eventually(
        lambda: found if len(found := collector.named("step of deploying/provisioning")) == wanted else None,
        20,
        "steps",
    )
    (asked,) = collector.named("rollway.activate_revision")
    assert (asked.trace_id.hex(), asked.parent_span_id.hex()) == (TRACE, SPAN)
    for step in steps:
        (link,) = step.links
        assert (link.trace_id.hex(), link.span_id.hex()) == (TRACE, SPAN)
        facts = {found.key: found.value.string_value for found in step.attributes}
        assert (facts["rollway.rollout"], facts["rollway.revision"]) == (str(rollout["id"]), "v2")
        assert step.end_time_unix_nano > step.start_time_unix_nano
    assert collector.services == {"rollway"}
    assert {span.name for span in collector.spans}.isdisjoint(
        {"rollway.wake_what_is_due", "rollway.do_route_lifecycle"}
    )
