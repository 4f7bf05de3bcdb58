"""What a deployment says of its requests: who may look at a coming revision, how long a request may be silent."""

import socket

from domain.model.states import DeploymentLifecycleStatus, DeploymentSubStep, Lifecycle
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import replicas
from tests.support.rows.deployments import Made, write
from tests.support.stack.waiting import eventually

DEPLOYING = DeploymentLifecycleStatus(Lifecycle.DEPLOYING, DeploymentSubStep.PROVISIONING)
PREVIEW = {"x-rollway-preview": "true"}


def test_a_deployment_without_a_preview_shows_its_coming_revision_to_nobody(envoy_edge: Edge) -> None:
    with replicas("blue", "green") as (blue, green):
        web = envoy_edge.make("■|□", blue, green, name="shy", status=DEPLOYING)
        eventually(lambda: envoy_edge.ask("/shy/", **PREVIEW).status_code == 200)
        write(envoy_edge.routes.engine, "UPDATE deployments SET preview = false WHERE id = %s", web.id)
        envoy_edge.routes.tell()
        eventually(lambda: envoy_edge.ask("/shy/", **PREVIEW).status_code == 503)
        assert envoy_edge.ask("/", host="preview.shy").status_code == 503
        assert envoy_edge.ask("/shy/").json()["replica"] == "blue"


def test_clients_that_speak_http_1_0_are_answered(envoy_edge: Edge) -> None:
    with replicas("here") as (here,):
        name = envoy_edge.make("■", here).name
        eventually(lambda: envoy_edge.ask(f"/{name}/").status_code == 200)
        for host in (b"", b"Host: anything\r\n"):
            with socket.create_connection(("127.0.0.1", envoy_edge.envoy.port), timeout=10) as client:
                client.sendall(b"GET /%s/ HTTP/1.0\r\n%s\r\n" % (name.encode(), host))
                answer = b""
                while more := client.recv(4096):
                    answer += more
            assert b" 200 " in answer.partition(b"\r\n")[0]
            assert b'"replica": "here"' in answer


def answered(edge: Edge, web: Made, status: int) -> None:
    eventually(lambda: edge.ask(f"/{web.name}/").status_code == status, what=f"an answer {status}")


def test_a_request_may_be_silent_for_as_long_as_its_deployment_allows(envoy_edge: Edge) -> None:
    with replicas("silent") as (silent,):
        web = envoy_edge.make("■", silent)
        answered(envoy_edge, web, 200)
        silent.seconds = 0.5
        assert envoy_edge.ask(f"/{web.name}/").status_code == 200
        write(envoy_edge.routes.engine, "UPDATE deployments SET idle_timeout_seconds = 0.2 WHERE id = %s", web.id)
        envoy_edge.routes.tell()
        answered(envoy_edge, web, 504)
        write(envoy_edge.routes.engine, "UPDATE deployments SET idle_timeout_seconds = NULL WHERE id = %s", web.id)
        envoy_edge.routes.tell()
        answered(envoy_edge, web, 200)
