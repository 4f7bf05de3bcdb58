"""Rollway's own processes, as command lines: migrations, workers, beat, Flower, the xDS server; and its proxy."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

from stack.home import Home, project_root
from stack.parts.envoy import envoy_part
from stack.plan import Part, Ready
from stack.ports import HOST
from stack.settings import ServerSettings

_CELERY = (sys.executable, "-m", "celery", "-A", "tasks.app")
_MOST_WORKERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSetting:
    """What the processes are told: where the servers are, how many workers there shall be, whether there is a proxy."""

    home: Home
    database_url: str
    redis_url: str
    workers: int
    servers: ServerSettings
    with_envoy: bool


ProcessList = Callable[[ProcessSetting], tuple[Part, ...]]


def default_workers() -> int:
    """One worker for each core this process may use, at most 8: each is a process of four threads and 60 MB."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MOST_WORKERS)


def rollway_processes(setting: ProcessSetting) -> tuple[Part, ...]:
    """Migrations, beat and Flower at once, since none needs another; the rest when the tables are there."""
    migrate = (sys.executable, "-m", "alembic", "upgrade", "head")
    return (
        _part(setting, "migrate", migrate, Ready("exit"), ("postgres",)),
        _beat(setting),
        *(_worker(setting, number) for number in range(1, setting.workers + 1)),
        _flower(setting),
        _api(setting),
        *((envoy_part(setting.home, setting.servers),) if setting.with_envoy else ()),
    )


def _worker(setting: ProcessSetting, number: int) -> Part:
    # without -Q it takes from all queues of tasks/settings.py, among them the one of the host that it finds itself on
    options = f"worker -P threads -c 4 --without-mingle --without-gossip -E -n worker{number}@%h --loglevel INFO"
    command = (*_CELERY, *options.split())
    return _part(setting, f"worker{number}", command, Ready("log", " ready."), ("valkey", "migrate"))


def _beat(setting: ProcessSetting) -> Part:
    command = (*_CELERY, "beat", "--pidfile=", "--loglevel", "INFO")
    return _part(setting, "beat", command, Ready("log", "beat: Starting"), ("valkey",))


def _flower(setting: ProcessSetting) -> Part:
    port = setting.servers.ports.flower
    options = f"flower --address={HOST} --port={port} --max_tasks=5000 --purge_offline_workers=60"
    ready = Ready("port", str(port))
    return _part(setting, "flower", (*_CELERY, *options.split()), ready, ("valkey",), address=f"http://{HOST}:{port}")


def _api(setting: ProcessSetting) -> Part:
    port = setting.servers.ports.api
    part = _part(
        setting,
        "api",
        (sys.executable, "-m", "api"),
        Ready("http", f"http://{HOST}:{port}/healthz"),
        ("valkey", "migrate"),
        address=f"http://{HOST}:{port}",
    )
    own = {
        "ROLLWAY_API_HOST": HOST,
        "ROLLWAY_API_PORT": str(port),
        "ROLLWAY_PROXY_KEY": setting.servers.proxy_key,
    }
    return replace(part, env={**part.env, **own})


def _part(  # noqa: PLR0913 -- the list above shall read as a list
    setting: ProcessSetting,
    name: str,
    command: tuple[str, ...],
    ready: Ready,
    after: tuple[str, ...],
    *,
    address: str = "",
) -> Part:
    return Part(
        name=name,
        command=command,
        cwd=str(project_root()),
        ready=ready,
        after=after,
        start_timeout=45,
        address=address,
        env={
            "DATABASE_URL": setting.database_url,
            "REDIS_URL": setting.redis_url,
            "ROLLWAY_HOME": str(setting.home.root),
            "PYTHONUNBUFFERED": "1",
        },
    )
