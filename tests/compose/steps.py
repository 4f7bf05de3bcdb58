"""What is tried, one after the other. Each step leaves a stack that serves."""

import re

import pytest

from tests.compose.engine import IsolatedDockerd
from tests.compose.project import Project, RefusedError
from tests.support.stack.waiting import eventually

_CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)"
_ASK_POSTGRES = "import psycopg; psycopg.connect('postgresql://rollway@postgres/rollway')"
_ASK_REDIS = "import redis; redis.Redis(host='redis').ping()"


def it_starts(project: Project) -> str:
    """Without `make env` it is refused, with it everything becomes healthy."""
    with pytest.raises(RefusedError, match='run "make env" once'):
        project.compose("config")
    project.run("make", "env")
    project.up()
    assert project.unwell() == {}
    return f"{len(project.containers())} containers"


def web_is_applied_and_answers(project: Project) -> str:
    """By its Host and by its path."""
    project.inside("rollway", "apply", "-f", "examples/web.yaml", "--wait")
    for path, host in (("/", "web"), ("/", "web.localhost"), ("/web/", "anything")):
        assert project.ask(path, host).status_code == 200, (path, host)
    hosts = project.inside("rollway", "hosts")
    assert len(re.findall(r"worker-\d", hosts)) == 2, hosts
    return project.ask().text


def a_second_revision_loses_no_request(project: Project) -> str:
    """From standard input, under load."""
    text = (project.folder / "examples/web.yaml").read_text().replace("name: v1", "name: v2").replace('"1"', '"2"')
    text = text.replace("python3 ", "python3 examples/")
    with project.loaded() as load:
        project.inside("rollway", "apply", "-f", "-", "--wait", given=text)
    assert project.ask().json()["revision"] == "v2"
    assert load.lost == []
    return f"0 of {load.sent} lost"


def replicas_reach_no_admin_of_envoy(project: Project) -> str:
    """They are processes in the worker's container."""
    project.inside("python", "-c", _CONNECT, "envoy", "8080")
    with pytest.raises(RefusedError, match="ConnectionRefusedError"):
        project.inside("python", "-c", _CONNECT, "envoy", "9901")
    with pytest.raises(RefusedError, match="ConnectionRefusedError"):
        project.inside("python", "-c", _CONNECT, "127.0.0.1", "9901")
    return "refused"


def stores_ask_for_passwords(project: Project) -> str:
    """Whoever has none is refused."""
    bare = ("env", "--unset", "PGPASSWORD", "python", "-c")
    with pytest.raises(RefusedError, match="no password supplied"):
        project.inside(*bare, _ASK_POSTGRES)
    with pytest.raises(RefusedError, match="AuthenticationError"):
        project.inside(*bare, _ASK_REDIS)
    return "refused"


def up_again_recreates_nothing(project: Project) -> str:
    """With --build, as the header of the file says it."""
    before = {name: container["Id"] for name, container in project.containers().items()}
    with project.loaded() as load:
        project.up()
    after = {name: container["Id"] for name, container in project.containers().items()}
    assert after == before
    assert load.lost == []
    return f"0 of {load.sent} lost"


def a_killed_worker_comes_back(project: Project) -> str:
    """With its replicas, which others replace meanwhile."""
    with project.loaded() as load:
        started = _started(project)
        project.engine.exec_start(project.engine.exec_create(_worker(project), ["sh", "-c", "kill -9 -1"])["Id"])
        eventually(lambda: _started(project) != started, what="another start of the container")
        _wait_until_ready(project)
    assert load.lost == []
    return f"0 of {load.sent} lost"


def a_restarted_worker_comes_back(project: Project) -> str:
    """`docker restart` of one."""
    with project.loaded() as load:
        project.engine.restart(_worker(project), timeout=20)
        _wait_until_ready(project)
    assert load.lost == []
    return f"0 of {load.sent} lost"


def a_restart_of_everything_is_survived(project: Project) -> str:
    """`docker-compose restart`."""
    project.compose("restart")
    return _wait_until_ready(project)


def a_restart_of_the_engine_is_survived(project: Project, engine: IsolatedDockerd) -> str:
    """In good order: containers are asked to end."""
    engine.stop()
    engine.start()
    return _wait_until_ready(project)


def a_power_failure_is_survived(project: Project, engine: IsolatedDockerd) -> str:
    """All processes are killed at once, the engine's too."""
    engine.lose_power()
    engine.start()
    return _wait_until_ready(project)


STEPS = (
    it_starts,
    web_is_applied_and_answers,
    a_second_revision_loses_no_request,
    replicas_reach_no_admin_of_envoy,
    stores_ask_for_passwords,
    up_again_recreates_nothing,
    a_killed_worker_comes_back,
    a_restarted_worker_comes_back,
    a_restart_of_everything_is_survived,
)
OF_OUR_OWN_ENGINE = (a_restart_of_the_engine_is_survived, a_power_failure_is_survived)


def _worker(project: Project) -> str:
    return f"{project.name}-worker-1"


def _started(project: Project) -> str:
    return str(project.engine.inspect_container(_worker(project))["State"]["StartedAt"])


def _wait_until_ready(project: Project) -> str:
    """All containers, and what they serve."""
    project.wait_until_healthy()
    status = re.compile(r"web +ready +3/3")
    eventually(lambda: status.search(project.inside("rollway", "status")), 120, "three healthy replicas")
    return "everything healthy by itself"
