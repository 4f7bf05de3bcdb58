"""A real Traefik for tests, which polls an api process, and the deployments behind it."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.support.people.asking import with_token
from tests.support.proxies.edge import Edge, EdgeRoutes
from tests.support.rows.databases import engine_on
from tests.support.stack.ports import free_port
from tests.support.stack.server_process import Process

_MISSING = "NO TRAEFIK THAT STARTS HERE, SO WHAT TRAEFIK MAKES OF ITS TABLE IS NOT TESTED"


def traefik_process(
    api: Process, folder: Path, node_id: str = "traefik-1", *, poll_seconds: float = 0.5, throttle_seconds: float = 0
) -> Process:
    """Not started yet. Skips the test where there is no program, and says so."""
    program = shutil.which("traefik", path=Path(sys.executable).parent) or shutil.which("traefik")
    if program is None:
        pytest.skip(f"{_MISSING}: it comes with requirements/dev.txt")
    port, own = free_port(), free_port()
    says = {**with_token(node_id), "poll_seconds": poll_seconds, "throttle_seconds": throttle_seconds}
    options = [
        f"--entryPoints.web.address=127.0.0.1:{port}",
        f"--entryPoints.traefik.address=127.0.0.1:{own}",
        "--ping",
        f"--providers.http.endpoint={api.url}/traefik?{urlencode(says)}",
        f"--providers.http.pollInterval={poll_seconds}s",
        f"--providers.providersThrottleDuration={throttle_seconds}s",
        "--global.checkNewVersion=false",
        "--global.sendAnonymousUsage=false",
    ]
    return Process([program, *options], port, folder / f"{node_id}.log", f"http://127.0.0.1:{own}/ping")


@contextmanager
def behind_traefik(api: Process, database: str, redis_url: str, folder: Path) -> Iterator[Edge]:
    """Start the server, and a Traefik that polls it; end both. Skips the test where Traefik does not start."""
    engine, traefik = engine_on(database), traefik_process(api, folder)
    try:
        api.start()
        try:
            traefik.start()
        except (AssertionError, OSError) as error:
            pytest.skip(f"{_MISSING}: {error}")
        yield Edge(EdgeRoutes(engine, redis_url), api, traefik)
    finally:
        for process in (traefik, api):
            if process.process is not None:
                process.end(kill=True)
        engine.dispose()
