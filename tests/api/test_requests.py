"""What a deployment says of its requests: who may look at a coming revision, and which clients are understood."""

import socket

from domain.model import DeploymentLifecycleStatus, DeploymentSubStep, Lifecycle
from tests.support.deployments import write
from tests.support.edge import Edge
from tests.support.waiting import eventually
from tests.support.web_replicas import replicas

DEPLOYING = DeploymentLifecycleStatus(Lifecycle.DEPLOYING, DeploymentSubStep.PROVISIONING)
PREVIEW = {"x-rollway-preview": "true"}


def test_a_deployment_without_a_preview_shows_its_coming_revision_to_nobody(edge: Edge) -> None:
    with replicas("blue", "green") as (blue, green):
        web = edge.make("■|□", blue, green, name="shy", status=DEPLOYING)
        eventually(lambda: edge.ask("/shy/", **PREVIEW).status_code == 200)
        write(edge.routes.engine, "UPDATE deployments SET preview = false WHERE id = %s", web.id)
        edge.routes.tell()
        eventually(lambda: edge.ask("/shy/", **PREVIEW).status_code == 503)
        assert edge.ask("/", host="preview.shy").status_code == 503
        assert edge.ask("/shy/").json()["replica"] == "blue"


def test_clients_that_speak_http_1_0_are_answered(edge: Edge) -> None:
    with replicas("here") as (here,):
        name = edge.make("■", here).name
        eventually(lambda: edge.ask(f"/{name}/").status_code == 200)
        for host in (b"", b"Host: anything\r\n"):
            with socket.create_connection(("127.0.0.1", edge.envoy.port), timeout=10) as client:
                client.sendall(b"GET /%s/ HTTP/1.0\r\n%s\r\n" % (name.encode(), host))
                answer = b""
                while more := client.recv(4096):
                    answer += more
            assert b" 200 " in answer.partition(b"\r\n")[0]
            assert b'"replica": "here"' in answer
