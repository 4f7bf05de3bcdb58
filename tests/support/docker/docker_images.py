"""Containers to test with, and what can be seen of them from outside."""

from typing import Any
from uuid import UUID, uuid4

import docker

from domain.revisions.revision import RevisionSpec
from runtime.protocol import Replica, ReplicaRequest
from tests.support.docker.busybox import IMAGE
from tests.support.proxies import plain_http
from tests.support.stack.waiting import eventually

SERVES_ITS_REVISION = (
    "trap 'exit 0' TERM; mkdir -p /www; echo $ROLLWAY_REVISION > /www/index.html; echo listens; "
    "httpd -f -p $PORT -h /www & wait"
)


def asked(
    command: str | tuple[str, ...] | None = SERVES_ITS_REVISION, *, route_id: UUID | None = None, **changes: Any
) -> ReplicaRequest:
    spec: dict[str, Any] = {
        "runtime": "docker",
        "command": ("/bin/sh", "-c", command) if isinstance(command, str) else command,
        **{name: changes.pop(name) for name in ("env", "working_directory") if name in changes},
        "docker": {"image": IMAGE, "pull": "never", **changes},
    }
    return ReplicaRequest(route_id or uuid4(), "web", "web-12345678", RevisionSpec.model_validate(spec))


def body(replica: Replica) -> str:
    def answer() -> str | None:
        reply = plain_http.get(f"http://{replica.address}/", timeout=2)
        return reply.text.strip() if reply.is_success else None

    return eventually(answer)


def containers(api: docker.APIClient, route_id: UUID) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.containers(all=True, filters={"label": [f"rollway.route={route_id}"]})
    return found
