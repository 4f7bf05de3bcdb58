"""Secrets of a host, as a container gets them."""

from pathlib import Path

from runtime.docker.docker_runtime import DockerRuntime
from runtime.host_secrets import HostSecrets
from runtime.protocol import ReplicaRequest
from tests.support.docker.docker_images import asked, body
from tests.support.workers.secrets import VALUE


def test_a_container_gets_its_secrets(docker_runtime: DockerRuntime, tmp_path: Path) -> None:
    (tmp_path / "db").write_text(f"{VALUE}\n")
    secrets = HostSecrets("here", (f"file:{tmp_path}",))
    code = "mkdir -p /www; echo $DB > /www/index.html; exec httpd -f -p $PORT -h /www"
    request = asked(code, env={"DB": {"secret": f"file:{tmp_path}/db"}})
    given = ReplicaRequest(request.route_id, request.deployment, request.revision, request.spec, secrets.of(request))
    assert body(docker_runtime.start(given)) == VALUE
