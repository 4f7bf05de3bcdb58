"""`rollway envoy-bootstrap`, `proxy-token` and `scrape-config`: files for proxies and a Prometheus of your own."""

import os
import socket
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from api.proxy_settings import API_PORT, DISCOVERY_PORT, ApiSettings
from cli.options import AsJson
from cli.terminal.exits import UsageError
from cli.terminal.output import print_json
from domain.text.errors import InvalidInputError
from domain.traffic.nodes import is_node_id, token_of
from stack.home.folder import find_home
from stack.home.server_settings import load_settings
from stack.stack_status import stack_status
from stack.supervisor.stop import host_of
from traffic.edge_settings import InFront
from traffic.envoy import bootstrap

_Admin = Annotated[
    str,
    typer.Option(
        "--admin",
        metavar="IP:PORT|/PATH",
        help="Envoy's own pages, on a port or a Unix socket; only this machine should reach them.",
    ),
]


def envoy_bootstrap(
    *,
    node_id: Annotated[
        str | None, typer.Option("--node-id", help="A name of its own for each proxy.", show_default="envoy-HOSTNAME")
    ] = None,
    listen: Annotated[
        str, typer.Option("--listen", metavar="IP:PORT", help="Where it takes requests.")
    ] = "0.0.0.0:8080",
    admin: _Admin = "127.0.0.1:9901",
    stats: Annotated[
        str, typer.Option("--stats", metavar="IP:PORT", help="Where Rollway's server reads what it has counted.")
    ] = "127.0.0.1:9902",
    xds: Annotated[
        str | None,
        typer.Option(
            "--xds",
            metavar="HOST:PORT|/PATH",
            help="Rollway's server for proxies, at ROLLWAY_DISCOVERY_PORT or on a Unix socket.",
            show_default=f"the one of the stack that runs here, else 127.0.0.1:{DISCOVERY_PORT}",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the bootstrap of an Envoy of your own. With --json as JSON, which Envoy reads as well.

    Envoy gets every change within milliseconds, and a replica is stopped only after Envoy has acknowledged the change.
    ROLLWAY_TRUSTED_HOPS and ROLLWAY_PROXY_PROTOCOL describe what is in front of Envoy, here and for the server for
    proxies. It holds the token of its node id, made from ROLLWAY_PROXY_KEY or the key of the stack that was made here.
    """
    text = bootstrap.envoy_bootstrap(
        node_id=_checked_id(node_id or f"envoy-{socket.gethostname()}"),
        key=_key(),
        listen=_own_address("--listen", listen),
        admin=Path(admin) if admin.startswith("/") else _own_address("--admin", admin),
        xds=_discovery(xds),
        stats=_own_address("--stats", stats),
        in_front=InFront.from_environment(os.environ),
    )
    if not as_json:
        return typer.echo(text, nl=False)
    import yaml  # noqa: PLC0415

    return print_json(yaml.safe_load(text))


def proxy_token(
    *,
    node_id: Annotated[str, typer.Argument(metavar="NODE_ID", help="How it names itself.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Print the token of a node id, for proxies that are no Envoy, for Prometheus and for people.

    It goes into the URL next to the id: http://HOST:PORT/v1/traffic?node=NODE_ID&token=TOKEN. It is made from
    ROLLWAY_PROXY_KEY, or from the key of the stack that was made here.
    """
    key = _key()
    if key is None:
        raise InvalidInputError(
            "there is no key to make a token from: set ROLLWAY_PROXY_KEY as for 'python -m api', or run 'rollway up'",
            field="ROLLWAY_PROXY_KEY",
        )
    token = token_of(_checked_id(node_id), key)
    if as_json:
        return print_json({"node_id": node_id, "token": token})
    return typer.echo(token)


def scrape_config(*, as_json: AsJson = False) -> None:
    """Print the configuration of a Prometheus for this stack: targets, and the token for the numbers of the fleet.

    With --json as JSON, which Prometheus reads as well. The alert rules are in stack/monitoring/rollway.rules.yml. The
    Alertmanager is expected on this machine; its file is stack/monitoring/alertmanager.yml.
    """
    api, home = _running_api(), find_home(os.environ)
    here = {"host": host_of(home.root)}
    parts = stack_status(home).parts
    processes = [part.address for part in parts if part.address.endswith("/metrics") or part.name == "people"]
    key = _key()
    user = {"username": "prometheus", "password": token_of("prometheus", key)} if key else None
    config = {
        "global": {"scrape_interval": "10s", "evaluation_interval": "5s"},
        "rule_files": ["rollway.rules.yml"],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": ["127.0.0.1:9093"]}]}]},
        "scrape_configs": [
            {
                "job_name": "rollway",
                "static_configs": [
                    {
                        "targets": [api, *(urlsplit(address).netloc for address in processes)],
                        "labels": here,
                    }
                ],
            },
            {
                "job_name": "rollway-fleet",
                "metrics_path": "/metrics/fleet",
                "honor_labels": True,  # many numbers of the fleet are of another host
                **({"basic_auth": user} if user else {}),
                "static_configs": [{"targets": [api], "labels": here}],
            },
        ],
    }
    if as_json:
        return print_json(config)
    import yaml  # noqa: PLC0415

    return typer.echo(yaml.safe_dump(config, sort_keys=False), nl=False)


def _checked_id(node_id: str) -> str:
    if not is_node_id(node_id):
        raise UsageError(f"a node id is 1 to 200 printable ASCII characters without blanks, not {node_id!r}")
    return node_id


def _key() -> str | None:
    """The key as `rollway up` chooses it: from the environment, else the one that was made here."""
    key = ApiSettings.from_environment(os.environ).proxy_key
    if key is not None:
        return key
    settings = load_settings(find_home(os.environ))
    return settings.proxy_key if settings else None


def _running_api() -> str:
    status = stack_status(find_home(os.environ))
    address = next((part.address for part in status.parts if part.name == "api" and status.running), "")
    return address.removeprefix("http://") or f"127.0.0.1:{API_PORT}"


def _discovery(value: str | None) -> Path | tuple[str, int]:
    """The given address, else that of the stack that runs here for Envoys."""
    if value is not None:
        return Path(value) if value.startswith("/") else _address("--xds", value)
    home = find_home(os.environ)
    settings = load_settings(home) if stack_status(home).running else None
    return settings.named_sockets.discovery if settings else ("127.0.0.1", DISCOVERY_PORT)


def _address(option: str, text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if host and port.isascii() and port.isdigit() and 0 < int(port) < 65536:  # noqa: PLR2004  (the ports there are)
        return host.removeprefix("[").removesuffix("]"), int(port)
    raise UsageError(f"{option} must be an address and a port such as 127.0.0.1:8080, not {text!r}")


def _own_address(option: str, text: str) -> tuple[str, int]:
    """Envoy resolves no name to listen on."""
    host, port = _address(option, text)
    try:
        return str(ip_address(host)), port
    except ValueError:
        raise UsageError(f"{option} must be an IP address and a port such as 0.0.0.0:8080, not {text!r}") from None
