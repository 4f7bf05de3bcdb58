"""The server for proxies, and proxies, in networks of their own."""

from pathlib import Path

from stack.home.server_settings import HOST
from stack.parts.envoy import envoy_program
from tests.support.partitions.network import Network
from tests.support.people.asking import KEY
from tests.support.proxies.edge import api_process, discovery_port
from tests.support.stack.ports import free_port
from tests.support.stack.server_process import Process
from traffic.envoy.bootstrap import envoy_bootstrap


def api_within(network: Network, database: str, redis_url: str, folder: Path) -> Process:
    (folder / "api").mkdir()
    process = api_process(database, redis_url, folder / "api", ROLLWAY_API_HOST=network.address("api"))
    process.command = [*network.within("api"), *process.command]
    process.ready = process.ready.replace(HOST, network.address("api"))
    return process


def envoy_within(network: Network, host: str, api: Process, folder: Path) -> Process:
    at, (port, admin, stats) = network.address(host), (free_port(), free_port(), free_port())
    config = folder / f"{host}.yaml"
    config.write_text(
        envoy_bootstrap(
            node_id=host,
            key=KEY,
            listen=(at, port),
            admin=(at, admin),
            xds=(network.address("api"), discovery_port(api)),
            stats=(at, stats),
        )
    )
    options = ["--concurrency", "1", "--log-level", "warn", "--disable-hot-restart"]
    command = [*network.within(host), str(envoy_program()), "--config-path", str(config), *options]
    return Process(command, port, folder / f"envoy-{host}.log", f"http://{at}:{admin}/ready")
