"""A thief in a container, on a machine where a neighbour's container and a worker with passwords run."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import docker
import pytest

from runtime.docker.docker_runtime import DockerRuntime
from tests.support.docker.docker_images import asked
from tests.support.workers.runtimes import ended

THIEF = """
home={home} worker={worker} port={port}
got() {{ echo "got $1"; }}
[ -e "$home" ] && got "the home"
[ "$(ls -d /proc/[0-9]* | wc -l)" -gt 9 ] && got "processes of others"
kill -0 "$worker" 2>/dev/null && got "the end of a worker"
for socket in /var/run/docker.sock /run/docker.sock; do [ -e "$socket" ] && got "the engine's socket"; done
gateway=$(ip route | sed -n 's/^default via \\([0-9.]*\\).*/\\1/p')
for host in 127.0.0.1 $gateway; do nc -w 2 "$host" "$port" </dev/null >/dev/null 2>&1 && got "a server of $host"; done
grep -q hunter2 /proc/*/environ 2>/dev/null && got "a neighbour's password"
mount -t tmpfs none /mnt 2>/dev/null && got "a mount"
for disk in 8:0 254:0 259:0; do
  mknod /tmp/$disk b ${{disk%:*}} ${{disk#*:}} 2>/dev/null; head -c 1 /tmp/$disk >/dev/null 2>&1 && got "a disk"
done
grep -q '^NoNewPrivs:.1' /proc/self/status || got "new privileges"
env | grep -q "$home" && got "where the home is"
for tool in ip nc mount mknod sed grep; do command -v $tool >/dev/null || echo "no $tool"; done
echo tried
"""


@pytest.fixture
def runtime(docker_url: str, docker_api: docker.APIClient) -> Iterator[DockerRuntime]:
    """With the policy of a worker that nobody has set anything for."""
    made = DockerRuntime(f"host-{uuid4()}", docker_url)
    yield made
    for replica in made.everyone():
        docker_api.remove_container(replica.handle.removeprefix("docker:"), force=True, v=True)
    made.close()


def test_a_thief_in_a_container_gets_nothing(
    runtime: DockerRuntime, replica_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"postgresql://u:p@h{replica_home}")
    runtime.start(asked("sleep 600", env={"TOKEN": "hunter2"}))
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as worker,
    ):
        thief = THIEF.format(home=replica_home, worker=worker.pid, port=server.getsockname()[1])
        request = asked(thief)
        runtime.start(request)
        ended(runtime, request.route_id)
        worker.kill()
    assert runtime.log_tail(request.route_id, 50).splitlines() == ["tried"]
