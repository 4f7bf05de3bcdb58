"""Two worker hosts under two names, with homes and addresses of their own; one of them is lost in mid-rollout."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import pytest

from domain.installation.settings import ports_between
from runtime.process.termination import stop_all
from tasks.hosts.host_rpc import read_logs
from tests.support.proxies.edge import edge_before
from tests.support.stack.stack import Fleet, service
from tests.support.stack.waiting import eventually
from tests.support.workers.callers import asked
from tests.support.workers.runtimes import environments_of, processes_of

pytestmark = pytest.mark.e2e

ADDRESSES = {"east": "127.0.0.1", "west": "127.0.0.2"}


@pytest.fixture
def silence_seconds() -> str:
    """After how long a silence a host is down."""
    return "4"


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[dict[str, Path]]:
    homes = {host: tmp_path / f"home-{host}" for host in ADDRESSES}
    yield homes
    for home in homes.values():
        stop_all(home, grace_seconds=2)


@pytest.fixture
def two_hosts(homes: dict[str, Path], fleet: Fleet, silence_seconds: str) -> Fleet:
    """Four replicas of v1, two on each host, each host with one worker."""
    for host in ADDRESSES:
        start(fleet, homes, host, silence_seconds=silence_seconds)
    eventually(lambda: len(fleet.rows("SELECT FROM hosts")) == 2, what="both to be known, or one gets all replicas")
    fleet.start_beat()
    fleet.deploy_first(replicas=4)
    return fleet


def start(
    fleet: Fleet,
    homes: dict[str, Path],
    host: str,
    name: str | None = None,
    silence_seconds: str = "4",
    **environment: str,
) -> None:
    """A worker of this host."""
    fleet.start_workers(
        name or f"worker-{host}",
        host=host,
        ROLLWAY_HOME=str(homes[host]),
        ROLLWAY_HOST_ADDRESS=ADDRESSES[host],
        ROLLWAY_HOST_SILENCE_SECONDS=silence_seconds,
        **environment,
    )


def placed(fleet: Fleet, statuses: str = "healthy") -> Counter[tuple[str, str]]:
    return Counter((route["host"], route["revision"]) for route in fleet.routes("web", statuses))


def ends(fleet: Fleet) -> list[dict[str, Any]]:
    """How each route has ended, and when, for a message."""
    query = "SELECT host, status, status_reason, healthy_at, status_changed_at FROM routes ORDER BY created_at"
    return fleet.rows(query)


def running_routes(home: Path) -> set[UUID]:
    """The routes of the replicas that run in a host's home."""
    return {UUID(carried["ROLLWAY_ROUTE"]) for _, carried in environments_of(home) if "ROLLWAY_ROUTE" in carried}


def test_replicas_are_spread_and_reached_where_their_host_is(two_hosts: Fleet, homes: dict[str, Path]) -> None:
    assert placed(two_hosts) == {("east", "v1"): 2, ("west", "v1"): 2}
    for route in two_hosts.routes("web"):
        address, port = route["address"].split(":")
        assert address == ADDRESSES[route["host"]]
        assert int(port) in ports_between(two_hosts.environment["ROLLWAY_REPLICA_PORTS"])
        assert route["id"] in running_routes(homes[route["host"]])
    asked = {host: dict.fromkeys(running_routes(home)) for host, home in homes.items()}
    logs = read_logs(two_hosts.waker.client, asked, 10, patience_seconds=20)
    assert {host: pieces.keys() for host, pieces in logs.items()} == {
        host: places.keys() for host, places in asked.items()
    }


def test_replicas_run_only_where_their_labels_are_and_wait_where_they_are_not(
    fleet: Fleet, homes: dict[str, Path]
) -> None:
    start(fleet, homes, "east", ROLLWAY_HOST_LABELS="zone=a")
    start(fleet, homes, "west", ROLLWAY_HOST_LABELS="zone=b")
    eventually(lambda: len(fleet.rows("SELECT FROM hosts WHERE labels <> '{}'")) == 2, what="both to be known")
    fleet.start_beat()
    fleet.deploy_first(replicas=2)
    near = {**service(), "hosts": {"zone": "b"}}
    fleet.ask("add_revision", deployment="web", name="v2", spec=near)
    fleet.activate("web", "v2")
    fleet.wait_until_ready("web", "v2", 2)
    assert placed(fleet) == {("west", "v2"): 2}
    fleet.ask("drain_host", host="west")
    fleet.kill("worker-west")
    for pid in processes_of(homes["west"]):
        psutil.Process(pid).kill()
    waiting = "SELECT FROM routes WHERE host IS NULL AND stopped_at IS NULL AND status = 'provisioning'"
    eventually(lambda: len(fleet.rows(waiting)) == 2, what="no other host to take them")
    assert placed(fleet) == {}
    start(fleet, homes, "west", "worker-west-again", ROLLWAY_HOST_LABELS="zone=b")
    fleet.wait_until_ready("web", "v2", 2)
    assert placed(fleet) == {("west", "v2"): 2}


def test_a_rollout_ends_as_promised_though_a_host_dies_in_the_middle(two_hosts: Fleet, homes: dict[str, Path]) -> None:
    two_hosts.add_revision("web", "v2", STARTUP_SECONDS="0.7")
    two_hosts.activate("web", "v2")
    eventually(lambda: placed(two_hosts)["west", "v2"], what="a new replica on the host that dies")
    two_hosts.kill("worker-west")
    for pid in processes_of(homes["west"]):
        psutil.Process(pid).kill()
    two_hosts.wait_until_ready("web", "v2", 4)
    assert placed(two_hosts) == {("east", "v2"): 4}
    (rollout,) = two_hosts.rollouts("web")
    assert (rollout["outcome"], rollout["failed_routes"]) == ("completed", 0), "a lost host is no revision's fault"
    lost = two_hosts.routes("web", "failed")
    assert {route["host"] for route in lost} == {"west"}, ends(two_hosts)
    assert all("its host west has been silent for" in route["status_reason"] for route in lost)


@pytest.mark.parametrize("silence_seconds", ["60"])
def test_a_rollout_ends_as_promised_though_a_machine_is_started_anew_in_the_middle(
    two_hosts: Fleet, homes: dict[str, Path], silence_seconds: str
) -> None:
    two_hosts.add_revision("web", "v2", STARTUP_SECONDS="0.7")
    two_hosts.activate("web", "v2")
    eventually(lambda: placed(two_hosts)["west", "v2"], what="a new replica on the machine that is started anew")
    two_hosts.kill("worker-west")
    ended = running_routes(homes["west"])
    for pid in processes_of(homes["west"]):
        psutil.Process(pid).kill()
    eventually(lambda: two_hosts.rows("SELECT FROM hosts WHERE last_seen_at < now() - interval '2.6 s'"))
    start(two_hosts, homes, "west", "worker-west-again", silence_seconds)
    two_hosts.wait_until_ready("web", "v2", 4)
    (rollout,) = two_hosts.rollouts("web")
    assert (rollout["outcome"], rollout["failed_routes"]) == ("completed", 0), "what a machine ended is no failure"
    lost = [route for route in two_hosts.routes("web", "failed") if route["id"] in ended]
    ways = {"its process ended", "its process was killed by SIGKILL"}  # what keeps its log may outlive it a moment
    assert {route["status_reason"] for route in lost} <= {f"{way} while its host west was away" for way in ways}
    assert lost


def test_a_rollout_ends_as_promised_though_the_only_machine_is_started_anew_and_its_beat_is_late(fleet: Fleet) -> None:
    fleet.start_workers("worker")
    fleet.start_beat()
    fleet.deploy_first(replicas=4, policy={"strategy": "rolling_update", "spec": {"max_surge": 4}})
    fleet.add_revision("web", "v2", STARTUP_SECONDS="1")
    fleet.activate("web", "v2")
    started = "SELECT FROM routes r JOIN revisions v ON v.id = r.revision_id WHERE v.name = 'v2' AND address <> ''"
    eventually(lambda: len(fleet.rows(started)) == 4, what="the new replicas")
    for name in ("beat", "worker"):
        fleet.kill(name)
    for process in fleet.replica_processes("web"):
        process.kill()
    eventually(lambda: fleet.rows("SELECT FROM hosts WHERE last_seen_at < now() - interval '2.6 s'"))
    fleet.start_workers("worker-again")
    eventually(lambda: fleet.rows("SELECT FROM hosts WHERE back_at < now() - interval '11 s'"), what="a late beat")
    fleet.start_beat("beat-again")
    fleet.wait_until_ready("web", "v2", 4)
    (rollout,) = fleet.rollouts("web")
    assert (rollout["outcome"], rollout["failed_routes"]) == ("completed", 0), "what a machine ended is no failure"


def test_a_host_that_comes_back_stops_what_was_replaced_and_adopts_nothing_twice(
    two_hosts: Fleet, homes: dict[str, Path]
) -> None:
    cut_off = running_routes(homes["west"])
    two_hosts.kill("worker-west")
    eventually(lambda: placed(two_hosts) == {("east", "v1"): 4}, what="the other host to have all")
    assert running_routes(homes["west"]) == cut_off, "nobody could stop them"
    start(two_hosts, homes, "west", "worker-west-again")
    eventually(lambda: not running_routes(homes["west"]), what="what was replaced to be stopped")
    stopped = [route for route in two_hosts.routes("web", "failed") if route["id"] in cut_off]
    eventually(lambda: all(route["stopped_at"] for route in two_hosts.routes("web", "failed")), what="to be noted")
    assert len(stopped) == 2
    assert placed(two_hosts) == {("east", "v1"): 4}
    two_hosts.ask("scale", deployment="web", desired_replicas=6)
    eventually(lambda: placed(two_hosts) == {("east", "v1"): 4, ("west", "v1"): 2}, what="new ones on the emptier host")
    live = {route["id"] for route in two_hosts.routes("web")}
    assert running_routes(homes["east"]) | running_routes(homes["west"]) == live


@pytest.fixture
def envoy_url(two_hosts: Fleet) -> Iterator[str]:
    """The url of an Envoy before both hosts."""
    with edge_before(two_hosts.database, two_hosts.environment["REDIS_URL"], two_hosts.home) as url:
        yield url


def test_a_host_is_emptied_for_its_maintenance_and_no_caller_notices(
    two_hosts: Fleet, homes: dict[str, Path], envoy_url: str
) -> None:
    down = "SELECT FROM hosts WHERE down_since IS NOT NULL"
    with asked(envoy_url, "web") as load:
        two_hosts.ask("drain_host", host="west")
        eventually(lambda: placed(two_hosts) == {("east", "v1"): 4}, what="the other host to have all")
        eventually(lambda: not running_routes(homes["west"]), what="nothing to run there any more")
        two_hosts.ask_to_end("worker-west")
        eventually(lambda: two_hosts.rows(down), what="the host to be down")
        start(two_hosts, homes, "west", "worker-west-again")
        eventually(lambda: not two_hosts.rows(down), what="it to be back")
        two_hosts.ask("undrain_host", host="west")
        two_hosts.ask("scale", deployment="web", desired_replicas=6)
        eventually(lambda: placed(two_hosts)["west", "v1"] == 2, what="new ones there")
    assert (load.tally.failed, set(load.tally.answers)) == ({}, {(200, "v1")})
    assert two_hosts.routes("web", "failed") == [], "what moved was drained, and is no failure"
