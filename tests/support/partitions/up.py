"""The hosts, their servers and their deployments, up for as long as a block lasts."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from db.connection.transactions import in_transaction
from db.replicas.secret_requests import ask_for_secrets
from runtime.process.termination import stop_all
from stack.home.server_settings import HOST
from tests.support.partitions.network import HOSTS, Network
from tests.support.partitions.proxies import api_within, envoy_within
from tests.support.partitions.several_hosts import NEAR, POLICY, SIDE, SILENCE_SECONDS, WEB, SeveralHosts
from tests.support.rows.databases import copy_of, migrated_template
from tests.support.stack.server_process import Process
from tests.support.stack.servers import embedded_postgres, embedded_redis
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually


def fleet_in(network: Network, folder: Path, stack: ExitStack) -> Fleet:
    """PostgreSQL and Valkey at addresses of their own, and a fleet that nobody works for yet."""
    postgres = stack.enter_context(embedded_postgres(folder / "postgres", also_at=network.address("postgres")))
    valkey = stack.enter_context(embedded_redis(folder / "valkey", also_at=network.address("redis")))
    database = stack.enter_context(copy_of(migrated_template(postgres), postgres))
    database = database.replace(f"@{HOST}:", f"@{network.address('postgres')}:")
    redis_url = valkey.url.replace(f"@{HOST}:", f"@{network.address('redis')}:")
    (folder / "fleet").mkdir()
    fleet = Fleet(database, redis_url, folder / "fleet")
    stack.callback(fleet.end)
    return fleet


@contextmanager
def several_hosts(network: Network, folder: Path) -> Iterator[SeveralHosts]:
    """All of it, up, with both deployments; everything has ended afterwards."""
    with ExitStack() as stack:
        fleet = fleet_in(network, folder, stack)
        homes = {host: folder / host for host in HOSTS}
        for home in homes.values():
            stack.callback(stop_all, home, 2)
        api = api_within(network, fleet.database, fleet.environment["REDIS_URL"], folder)
        proxies = {host: envoy_within(network, host, api, folder) for host in HOSTS}
        for process in (api, *proxies.values()):
            stack.callback(_end, process)
        secret = {"secret": f"file:{folder / 'secrets' / 'near'}"}
        hosts = SeveralHosts(network, fleet, homes, api, proxies, secret)
        _start(hosts, folder)
        yield hosts


def _end(process: Process) -> None:
    if process.process is not None:
        process.end(kill=True)


def _start(hosts: SeveralHosts, folder: Path) -> None:
    (folder / "secrets").mkdir()
    (folder / "secrets" / "near").write_text("for some hosts only")
    for host in HOSTS:
        hosts.fleet.within[f"worker-{host}"] = hosts.network.within(host)
        allowed = {"ROLLWAY_SECRETS_ALLOW": f"file:{folder / 'secrets'}"} if host in NEAR else {}
        hosts.fleet.begin_worker(
            f"worker-{host}",
            host=host,
            ROLLWAY_HOME=str(hosts.homes[host]),
            ROLLWAY_HOST_ADDRESS=hosts.network.address(host),
            ROLLWAY_HOST_SILENCE_SECONDS=SILENCE_SECONDS,
            **allowed,
        )
    hosts.fleet.start_beat()
    hosts.api.start()
    for proxy in hosts.proxies.values():
        proxy.start()
    eventually(lambda: len(hosts.fleet.rows("SELECT FROM hosts")) == len(HOSTS), what="all hosts to be known")
    _deploy(hosts)


def _deploy(hosts: SeveralHosts) -> None:
    fleet = hosts.fleet
    for name, replicas in (("web", WEB), ("side", SIDE)):
        fleet.ask("create_deployment", deployment=name, desired_replicas=replicas, policy=POLICY)
    hosts.roll("web")
    secret = hosts.secret["secret"]
    in_transaction(fleet.engine, partial(ask_for_secrets, deployment="side", references=[secret]))
    answered = "SELECT FROM host_secrets WHERE checked_at IS NOT NULL"
    eventually(lambda: len(fleet.rows(answered)) == len(HOSTS), what="hosts to say whether they have the secret")
    hosts.roll("side")
    hosts.wait_until_whole()
    hosts.roll_side()
