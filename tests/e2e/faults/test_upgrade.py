"""From the version before to this one with rollouts under way: workers of both side by side, and back again."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
import redis

from cli.demo.demo_run import demo_load
from db.audit.invariants import impossible_combinations
from tasks.redis.dead_letters import last_aside
from tests.support.people.asking import KEY
from tests.support.proxies import plain_http
from tests.support.proxies.edge import api_process, discovery_port
from tests.support.proxies.handed_over import HandedOver
from tests.support.rows.databases import copy_of, replay
from tests.support.stack import version_before as before
from tests.support.stack.ports import free_port
from tests.support.stack.server_process import Process
from tests.support.stack.servers import EmbeddedServer
from tests.support.stack.stack import ROOT, Fleet
from tests.support.stack.version_before import apply_with, run_with
from tests.support.stack.waiting import eventually
from tests.support.workers.callers import running
from tests.support.workers.queues import answer_of

pytestmark = pytest.mark.e2e


@pytest.fixture
def version_before(tmp_path: Path) -> Path:
    try:
        return before.unpack_version_before(tmp_path / "version-before")
    except before.NoVersionBeforeError as error:
        pytest.skip(f"NO VERSION BEFORE, SO NO UPGRADE IS TESTED HERE: {error}")


@pytest.fixture
def fleet(version_before: Path, postgres_server: EmbeddedServer, redis_url: str, tmp_path: Path) -> Iterator[Fleet]:
    """All of the version before: its tables, a worker, beat. It ends with every step replayed by today's code."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    with copy_of("template1", postgres_server) as database:
        fleet = Fleet(database, redis_url, home)
        fleet.code = version_before
        try:
            run_with(fleet, "alembic", "upgrade", "head")
            fleet.start_workers("old-worker")
            fleet.start_beat("old-beat")
            yield fleet
        finally:
            fleet.end()
        replay(database)


@pytest.fixture
def api(fleet: Fleet, version_before: Path) -> Iterator[Process]:
    """The server for proxies of the version before."""
    api = api_process(fleet.database, fleet.environment["REDIS_URL"], fleet.home)
    api.code = version_before
    api.start()
    yield api
    api.end(kill=True)


@pytest.fixture
def envoy(api: Process, fleet: Fleet) -> Iterator[HandedOver]:
    """An Envoy of the version before."""
    port, admin = free_port(), free_port()
    fleet.environment["ROLLWAY_PROXY_KEY"] = KEY
    listens = ("--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}")
    made = HandedOver(f"http://127.0.0.1:{port}", ("--node-id", "edge-1", *listens), fleet.home)
    made.start(fleet, api.port)
    eventually(lambda: plain_http.get(f"http://127.0.0.1:{admin}/ready").status_code == 200)
    yield made
    made.end()


def test_no_request_is_lost_and_rollouts_go_on_while_workers_of_both_versions_work_side_by_side(
    fleet: Fleet, api: Process, envoy: HandedOver, version_before: Path, redis_client: redis.Redis
) -> None:
    apply_with(fleet, "v1", "--wait")
    with _no_request_lost(envoy):
        with _a_step(fleet):
            apply_with(fleet, "v2", STARTUP_SECONDS="2")
        _send(fleet, redis_client, "pause", "web")
        fleet.code = ROOT
        run_with(fleet, "cli.main", "migrate")
        _exchange_worker(fleet, redis_client)
        with _api_beside(api, envoy, fleet):
            _steer_from(version_before, fleet)
            fleet.kill("old-beat")
            fleet.start_beat("new-beat")
            fleet.wait_until_ready("web", "v2", 4)
            _go_back(fleet, version_before)

    assert [rollout["outcome"] for rollout in fleet.rollouts("web")] == ["completed", "completed"]
    assert [route for name in before.REPLICAS for route in fleet.routes(name, "failed")] == []
    assert last_aside(redis_client) == []
    with psycopg.connect(fleet.database) as connection:
        assert impossible_combinations(connection) == []
    logs = [file.stem for file in fleet.home.glob("*.log")]
    assert {name: troubles for name in logs if (troubles := _troubles(fleet, name))} == {}


@contextmanager
def _api_beside(old: Process, envoy: HandedOver, fleet: Fleet) -> Iterator[None]:
    """The new server for proxies starts beside the old one, Envoy is handed over, and the old server ends."""
    new = api_process(fleet.database, fleet.environment["REDIS_URL"], fleet.home)
    new.start()
    try:
        envoy.start(fleet, discovery_port(new))
        eventually(lambda: envoy.started[0].poll() is not None, 30, "the old Envoy to end")
        old.end()
        yield
    finally:
        new.end(kill=True)


def _exchange_worker(fleet: Fleet, client: redis.Redis) -> None:
    """An old worker continues as new senders ask for it; a new one works beside it, and then alone."""
    fleet.ask("scale", deployment="web", desired_replicas=5)
    with _a_step(fleet):
        _send(fleet, client, "resume", "web")
    fleet.ask("pause", deployment="web")  # at once: the rollout is not over before the new worker begins
    fleet.start_workers("new-worker")
    _send(fleet, client, "resume", "web")
    _scale_until_both_decide(fleet, "old-worker", "new-worker")
    assert fleet.ask_to_end("old-worker") == 0


def _steer_from(version_before: Path, fleet: Fleet) -> None:
    """A command line that was not upgraded yet, for workers that were."""
    fleet.code = version_before
    run_with(fleet, "cli.main", "promote", "model")
    run_with(fleet, "cli.main", "scale", "web", "4")
    fleet.code = ROOT
    eventually(lambda: fleet.rollouts("model")[-1]["outcome"] == "completed", what="the promotion")


def _go_back(fleet: Fleet, version_before: Path) -> None:
    """The version before alone again, on the tables of this one and what this one wrote."""
    fleet.kill("new-beat")
    fleet.code = version_before
    fleet.start_beat("old-beat-again")
    fleet.start_workers("old-worker-again")
    assert fleet.ask_to_end("new-worker") == 0
    run_with(fleet, "cli.main", "undo", "web", "--wait")
    fleet.wait_until_ready("web", "v1", 4)


@contextmanager
def _no_request_lost(envoy: HandedOver) -> Iterator[None]:
    with running(demo_load(envoy.url, "web")) as load:
        yield
    assert load.tally.failed == {}


@contextmanager
def _a_step(fleet: Fleet) -> Iterator[None]:
    """The rollout moves by what is done here; it may do so before that has ended."""
    before = fleet.steps("web")
    yield
    eventually(lambda: fleet.steps("web") != before, what="a step")


def _send(fleet: Fleet, client: redis.Redis, command: str, deployment: str) -> None:
    """A command as a message, which some worker carries out."""
    payload = {"request_id": uuid4().hex, "deployment": deployment}
    sent = fleet.producer.send_task(f"rollway.{command}", kwargs={"payload": payload}, queue="commands")
    answer = answer_of(client, str(sent.id))["result"]
    assert answer["ok"], answer
    assert not answer["result"]["already"], answer


def _scale_until_both_decide(fleet: Fleet, *workers: str) -> None:
    """Whichever is quicker has a decision: there are as many as it takes for each to be quicker at times.

    At rest, where both versions decide alike: of a green set that is scaled down while it waits, this one ends some.
    """
    fleet.deploy_first("spare", 1)
    before = {worker: _decisions(fleet, worker) for worker in workers}
    sizes = iter([2, 1] * 50)

    def both_have_decided() -> bool:
        fleet.ask("scale", deployment="spare", desired_replicas=next(sizes))
        return all(_decisions(fleet, worker) > before[worker] for worker in workers)

    eventually(both_have_decided, what=f"decisions of {workers}")


def _decisions(fleet: Fleet, worker: str) -> int:
    return fleet.log(worker).count("event='decided'")


def _troubles(fleet: Fleet, name: str) -> list[str]:
    """Errors in a log."""
    trouble = re.compile("level='(error|critical)'|Traceback|^Rollway does not begin")
    return [line for line in fleet.log(name).splitlines() if trouble.search(line)]
