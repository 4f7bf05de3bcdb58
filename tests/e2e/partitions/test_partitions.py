"""A host in a network of its own is cut off from a server, or from all: at rest, and in the middle of a rollout."""

import subprocess
import sys
import time
from collections.abc import Iterator

import psycopg
import pytest

from cli.demo.load.generator import Load
from tasks.messaging.queues import host_queue
from tests.support.partitions.laws import faults
from tests.support.partitions.network import networks
from tests.support.partitions.several_hosts import FAR, NEAR, SeveralHosts
from tests.support.partitions.up import several_hosts
from tests.support.stack.stack import ROOT
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e


CUTS = {
    "postgres": ("postgres",),
    "redis": ("redis",),
    "the server for proxies": ("api",),
    "all": ("postgres", "redis", "api", *NEAR),
}
"""What the far host does not reach."""
each_cut = pytest.mark.parametrize("cut", [pytest.param(cut, id=name) for name, cut in CUTS.items()])


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeveralHosts]:
    with networks() as network, several_hosts(network, tmp_path_factory.mktemp("hosts")) as made:
        yield made


@pytest.fixture
def healthy_hosts(hosts: SeveralHosts) -> SeveralHosts:
    """All is well before a case, whatever the one before it has left."""
    hosts.wait_until_whole()
    return hosts


def unanswered(loads: dict[str, Load], cut: tuple[str, ...]) -> list[str]:
    """The requests that callers lost, though both the proxy and the replica could be reached.

    Where other hosts are cut off too, that leaves the proxies of these, and requests that may be sent twice: nobody
    may ask anew what was on its way to a replica that vanished, and the far proxy does not reach most replicas.
    """
    return [
        f"{proxy}: {failure}"
        for proxy, load in loads.items()
        for failure in load.tally.failures
        if not set(NEAR) <= set(cut) or (proxy in NEAR and failure.idempotent)
    ]


@each_cut
def test_at_rest_nobody_notices_and_others_go_on(healthy_hosts: SeveralHosts, cut: tuple[str, ...]) -> None:
    before, rests = healthy_hosts.running(FAR), healthy_hosts.rests()
    with healthy_hosts.under_load() as loads:
        with healthy_hosts.cut(cut):
            if "postgres" in cut:
                eventually(lambda: healthy_hosts.rests() > rests, within=14, what="the far worker to rest")
            if cut == ("postgres",):
                eventually(
                    lambda: healthy_hosts.queues(FAR) == {host_queue(FAR)}, what="it to read its own queue alone"
                )
            healthy_hosts.roll_side()
            assert healthy_hosts.running(FAR) == before, "what runs there continues"
            if {"redis", "postgres"} <= set(cut):
                healthy_hosts.network.heal("postgres")
                eventually(lambda: healthy_hosts.is_seen(FAR), what="a sign of life while Redis is away")
        healthy_hosts.wait_until_whole()
    assert unanswered(loads, cut) == []
    assert faults(healthy_hosts) == []


@each_cut
def test_in_the_middle_of_a_rollout_it_completes_without_blame(
    healthy_hosts: SeveralHosts, cut: tuple[str, ...]
) -> None:
    with healthy_hosts.under_load() as loads:
        revision = healthy_hosts.roll("web")
        eventually(lambda: healthy_hosts.placed(revision)[FAR], what="a new replica on the host that is cut off")
        before = healthy_hosts.running(FAR)
        with healthy_hosts.cut(cut):
            drained = healthy_hosts.fleet.rows("SELECT id FROM routes WHERE drain_started_at IS NOT NULL")
            leaving = {str(row["id"]) for row in drained}  # asked to stop before the cut
            healthy_hosts.roll_side()
            healthy_hosts.wait_for_end("web", 90)
            if "api" not in cut or "postgres" in cut:
                kept = {each for each in before if each[0] not in leaving}
                assert kept <= set(healthy_hosts.running(FAR)), "nobody can ask it to stop them"
        healthy_hosts.wait_until_whole()
    assert {route["revision"] for route in healthy_hosts.fleet.routes("web")} == {revision}
    assert unanswered(loads, cut) == []
    assert faults(healthy_hosts) == []


HOLDS = """
import sys, time
from db.connection.transactions import make_engine, transaction
from db.connection.database_settings import DatabaseSettings
with transaction(make_engine(DatabaseSettings(url=sys.argv[1]))) as connection:
    connection.execute("SELECT FROM deployments WHERE name = 'side' FOR NO KEY UPDATE").fetchall()
    print("held", flush=True)
    time.sleep(60)
"""


def test_what_a_cut_transaction_has_locked_is_free_soon(healthy_hosts: SeveralHosts) -> None:
    command = [*healthy_hosts.network.within(FAR), sys.executable, "-c", HOLDS, healthy_hosts.fleet.database]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        began = time.monotonic()
        with healthy_hosts.cut(("postgres",)), psycopg.connect(healthy_hosts.fleet.database) as connection:
            connection.execute("SELECT FROM deployments WHERE name = 'side' FOR NO KEY UPDATE")
            connection.rollback()
            seconds = time.monotonic() - began
        holder.kill()
    assert seconds < 25, "it was 30"
    healthy_hosts.wait_until_whole()
    assert faults(healthy_hosts) == []
