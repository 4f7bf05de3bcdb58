"""Rollway's own processes, as command lines: migrations, workers, beat, Flower, its servers; and its proxy."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

from runtime.machine.free_ports import Address
from stack.home.folder import Home, project_root
from stack.home.server_settings import HOST, ServerSettings
from stack.part_specs import Ready, StackPart
from stack.parts.envoy import envoy_parts

_MOST_WORKERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSetting:
    """The setting of processes: where servers are, how many workers and proxies there shall be."""

    home: Home
    database_url: str
    redis_url: str
    workers: int
    servers: ServerSettings
    envoys: int


ProcessList = Callable[[ProcessSetting], tuple[StackPart, ...]]


def default_workers() -> int:
    """One worker for each core this process may use, at most 8: each is a process of four threads and 60 MB."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MOST_WORKERS)


def measured_processes(workers: int) -> tuple[str, ...]:
    """The parts that show metrics on a port of their own."""
    return ("beat", *(f"worker{number}" for number in range(1, workers + 1)))


def rollway_processes(setting: ProcessSetting) -> tuple[StackPart, ...]:
    """Migrations, beat and Flower at once, since none needs another; the rest when the tables are there.

    A restart takes them in this order: beat comes after workers, which must know the ticks that it sends, and Envoy at
    once after the server that tells it, in case an upgrade changes how it asks.
    """
    return (
        _part(setting, "migrate", MIGRATE, Ready("exit"), ("postgres",)),
        *(_worker(setting, number) for number in range(1, setting.workers + 1)),
        _api(setting),
        *envoy_parts(setting.home, setting.servers, setting.envoys),
        _people(setting),
        _beat(setting),
        _flower(setting),
    )


def worker_processes(setting: ProcessSetting) -> tuple[StackPart, ...]:
    """The workers alone, for a host whose servers and beat are elsewhere, and whose database others migrate."""
    return tuple(_worker(setting, number) for number in range(1, setting.workers + 1))


def _worker(setting: ProcessSetting, number: int) -> StackPart:
    name = f"worker{number}"
    part = _part(setting, name, worker(name), Ready("log", " ready."), ("valkey", "migrate"))
    own = {
        "ROLLWAY_REPLICA_USER": setting.servers.replica_user or "",
        "ROLLWAY_CERTIFICATE_KEY": setting.servers.certificate_key,
    }
    return replace(part, env={**part.env, **own})


def _beat(setting: ProcessSetting) -> StackPart:
    return _part(setting, "beat", BEAT, Ready("log", "beat: Starting"), ("valkey",))


def _flower(setting: ProcessSetting) -> StackPart:
    port = setting.servers.ports.flower
    url = f"http://{HOST}:{port}"
    ready = Ready("http", f"{url}/healthcheck")
    part = _part(setting, "flower", flower(HOST, port), ready, ("valkey",), address=url, listens=(HOST, port))
    # in its environment, where no other user of this machine sees it
    return replace(part, env={**part.env, "FLOWER_BASIC_AUTH": f"rollway:{setting.servers.flower_password}"})


def _api(setting: ProcessSetting) -> StackPart:
    port = setting.servers.ports.api
    part = _part(
        setting,
        "api",
        API,
        Ready("http", f"http://{HOST}:{port}/healthz"),
        ("valkey", "migrate"),
        address=f"http://{HOST}:{port}",
        listens=(HOST, port),
    )
    own = {
        "ROLLWAY_API_HOST": HOST,
        "ROLLWAY_API_PORT": str(port),
        "ROLLWAY_DISCOVERY_SOCKET": str(setting.servers.named_sockets.discovery),
        "ROLLWAY_PROXY_KEY": setting.servers.proxy_key,
        "ROLLWAY_CERTIFICATE_KEY": setting.servers.certificate_key,
        "ROLLWAY_TLS_HOST": setting.servers.envoy_host,
        "ROLLWAY_TLS_PORT": str(setting.servers.ports.envoy_tls),
        "ROLLWAY_TRUSTED_HOPS": str(setting.servers.in_front.trusted_hops),
        "ROLLWAY_PROXY_PROTOCOL": "on" if setting.servers.in_front.proxy_protocol else "off",
    }
    return replace(part, env={**part.env, **own})


def _people(setting: ProcessSetting) -> StackPart:
    port = setting.servers.ports.people
    url = f"http://{HOST}:{port}"
    ready, after = Ready("http", f"{url}/readyz"), ("valkey", "migrate")
    part = _part(setting, "people", PEOPLE, ready, after, address=url, listens=(HOST, port))
    own = {"ROLLWAY_PEOPLE_HOST": HOST, "ROLLWAY_PEOPLE_PORT": str(port)}
    envoys = envoy_parts(setting.home, setting.servers, setting.envoys)
    if address := next((envoy.address for envoy in envoys if envoy.name == "envoy"), ""):
        own["ROLLWAY_CALLERS_URL"] = address
    return replace(part, env={**part.env, **own})


def _part(  # noqa: PLR0913 -- the list above shall read as a list
    setting: ProcessSetting,
    name: str,
    command: tuple[str, ...],
    ready: Ready,
    after: tuple[str, ...],
    *,
    address: str = "",
    listens: Address | None = None,
) -> StackPart:
    metrics = setting.servers.metrics.get(name)
    variables = {"ROLLWAY_METRICS_HOST": HOST, "ROLLWAY_METRICS_PORT": str(metrics)} if metrics else {}
    return StackPart(
        name=name,
        command=command,
        cwd=str(project_root()),
        ready=ready,
        after=after,
        start_timeout=45,
        address=f"http://{HOST}:{metrics}/metrics" if metrics else address,
        listens=(HOST, metrics) if metrics else listens,
        env={
            "DATABASE_URL": setting.database_url,
            "REDIS_URL": setting.redis_url,
            "ROLLWAY_HOME": str(setting.home.root),
            "PYTHONUNBUFFERED": "1",
            **variables,
        },
    )


MIGRATE = (sys.executable, "-m", "stack.parts.migrate_if_needed")
API = (sys.executable, "-m", "api")
PEOPLE = (sys.executable, "-m", "api.people")
BEAT = (sys.executable, "-m", "tasks", "beat", "--pidfile=", "--loglevel", "INFO")
FLOWER_OPTIONS = (
    "--max_tasks=5000",
    "--purge_offline_workers=60",
    "--tasks_columns=name,kwargs,state,result,received,runtime,worker,uuid",
)


def worker(name: str) -> tuple[str, ...]:
    """A worker of this name; each of a host needs one of its own. Celery puts the host in for %h.

    Without -Q it takes from all queues of tasks/messaging/queues.py, among them that of its own host.
    """
    options = f"worker -P threads -c 4 --without-mingle --without-gossip -E -n {name}@%h --loglevel INFO"
    return (sys.executable, "-m", "tasks", *options.split())


def flower(address: str, port: int) -> tuple[str, ...]:
    return (sys.executable, "-m", "tasks.telemetry.flower", f"--address={address}", f"--port={port}", *FLOWER_OPTIONS)
