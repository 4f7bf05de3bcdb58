"""An engine that is down, frozen or remote. Each test has a dockerd of its own to be hard on."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from runtime.docker.container import DockerPolicy
from runtime.docker.docker_runtime import DockerRuntime
from runtime.protocol import Replica, ReplicaStartError, RuntimeUnavailableError
from tests.support.docker.busybox import import_busybox
from tests.support.docker.docker_engine import Dockerd, NoEngineError, own_dockerd
from tests.support.docker.docker_images import asked, body
from tests.support.stack.server_process import suspend
from tests.support.stack.waiting import eventually
from tests.support.workers.runtimes import ended


@pytest.fixture(scope="module")
def dockerd() -> Iterator[Dockerd]:
    try:
        with own_dockerd() as server:
            import_busybox(server.url)
            yield server
    except NoEngineError as error:
        pytest.skip(f"NO DOCKERD OF ITS OWN, SO AN ENGINE THAT GOES DOWN IS NOT TESTED HERE: {error}")


@pytest.fixture
def runtime(dockerd: Dockerd) -> Iterator[DockerRuntime]:
    made = DockerRuntime("here", dockerd.url, policy=DockerPolicy(host_network=True))
    yield made
    for replica in made.everyone():
        made.kill(replica.route_id)
        ended(made, replica.route_id)
        made.forget(replica.route_id)
    made.close()


def test_while_the_engine_is_down_nothing_is_known_of_a_replica_and_nothing_fails(
    dockerd: Dockerd, runtime: DockerRuntime
) -> None:
    replica = runtime.start(asked("trap 'exit 0' TERM; sleep 60 & wait", network="host"))
    asked_while_down = asked("sleep 60", network="host")
    dockerd.stop()
    for ask in (
        lambda: runtime.find(replica.route_id),
        runtime.everyone,
        lambda: runtime.start(asked_while_down),
        lambda: runtime.terminate(replica.route_id),
        lambda: runtime.kill(replica.route_id),
        lambda: runtime.forget(replica.route_id),
        lambda: runtime.log_tail(replica.route_id, 5),
    ):
        with pytest.raises(RuntimeUnavailableError, match="no Docker engine answers at unix://"):
            ask()
    dockerd.start()
    found = runtime.find(replica.route_id)
    assert found
    assert not found.running, "an engine stops its containers when it stops"
    assert runtime.start(asked_while_down).running


def test_an_engine_that_hangs_is_waited_for_once_and_not_for_every_replica(
    dockerd: Dockerd, runtime: DockerRuntime
) -> None:
    replica = runtime.start(asked("sleep 60", network="host"))
    hasty = DockerRuntime("here", dockerd.url, timeout_seconds=1)
    eventually(partial(found_by, hasty, replica))
    suspend(dockerd.pid)
    try:
        before = time.monotonic()
        for _ in range(50):
            with pytest.raises(RuntimeUnavailableError, match=r"does not answer in time|did not answer a moment ago"):
                hasty.find(replica.route_id)
        assert time.monotonic() - before < 25
    finally:
        os.kill(dockerd.pid, signal.SIGCONT)
    eventually(partial(found_by, hasty, replica))
    hasty.close()


def found_by(runtime: DockerRuntime, replica: Replica) -> bool:
    try:
        return runtime.find(replica.route_id) == replica
    except RuntimeUnavailableError:
        return False


def test_an_engine_that_hangs_from_the_first_question_on_is_waited_for_once_by_all_who_ask(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(str(tmp_path / "engine.sock"))
        engine.listen(100)
        runtime = DockerRuntime("here", f"unix://{tmp_path}/engine.sock", timeout_seconds=1)
        with ThreadPoolExecutor(8) as threads:
            asking = [threads.submit(runtime.find, uuid4()) for _ in range(8)]
        said = {str(future.exception()).partition("engine.sock ")[2] for future in asking}
    assert said == {"does not answer in time", "did not answer a moment ago"}


def test_an_engine_without_a_bridge_says_that_no_port_can_be_published(runtime: DockerRuntime) -> None:
    with pytest.raises(ReplicaStartError, match="publishes no port in the network 'default'"):
        runtime.start(asked("sleep 60"))
    assert list(runtime.everyone()) == []


def test_nobody_listens_at_the_url() -> None:
    for url in ("tcp://127.0.0.1:1", "unix:///no/such.sock"):
        with pytest.raises(RuntimeUnavailableError, match=f"no Docker engine answers at {url}"):
            DockerRuntime("here", url).find(uuid4())


def test_an_engine_that_has_lost_its_containerd_fails_no_start(dockerd: Dockerd, runtime: DockerRuntime) -> None:
    request = asked("sleep 60", network="host")
    (containerd,) = [child for child in psutil.Process(dockerd.pid).children() if child.name() == "containerd"]
    containerd.kill()
    with pytest.raises(RuntimeUnavailableError, match="is in trouble"):
        runtime.start(request)

    def started() -> bool:
        try:
            return runtime.start(request).running
        except RuntimeUnavailableError:
            return False

    assert eventually(started)


def test_a_remote_engine_is_reached_by_tls_at_the_address_of_its_host(
    dockerd: Dockerd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = dockerd.listen_by_tls(tmp_path)
    dockerd.stop()
    dockerd.start()
    with pytest.raises(RuntimeUnavailableError):
        DockerRuntime("there", url).everyone()
    monkeypatch.setenv("DOCKER_HOST", url)
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", str(tmp_path))
    remote = DockerRuntime("there", address="localhost", policy=DockerPolicy(host_network=True))
    replica = remote.start(asked(network="host"))
    assert str(replica.address).startswith("localhost:")
    assert body(replica) == "web-12345678"
    assert list(remote.everyone()) == [replica]
    remote.terminate(replica.route_id)
    assert ended(remote, replica.route_id).exit_code == 0
    remote.forget(replica.route_id)
    remote.close()
