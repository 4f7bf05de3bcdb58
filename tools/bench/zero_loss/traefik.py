"""A real Traefik in Envoy's place, which polls the stack's table as one of somebody's own does."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from domain.traffic.nodes import token_of
from stack.home.folder import Home
from stack.home.server_settings import HOST, load_settings
from tests.support.stack.ports import free_port
from tests.support.stack.server_process import Process
from tools.bench.zero_loss.service import ScenarioError

_NODE = "traefik-1"
_POLL_SECONDS = 1.0


@contextmanager
def behind_traefik(home: Home) -> Iterator[str]:
    """Start one, and tell where it listens, as host:port. Raises ScenarioError where there is none."""
    program = shutil.which("traefik", path=Path(sys.executable).parent) or shutil.which("traefik")
    settings = load_settings(home)
    if program is None or settings is None:
        raise ScenarioError("there is no traefik here: it comes with requirements/dev.txt")
    port, own = free_port(), free_port()
    says = {"node": _NODE, "token": token_of(_NODE, settings.proxy_key), "poll_seconds": _POLL_SECONDS}
    table = f"http://{HOST}:{settings.ports.api}/traefik?{urlencode({**says, 'throttle_seconds': 0})}"
    options = [
        f"--entryPoints.web.address={HOST}:{port}",
        f"--entryPoints.traefik.address={HOST}:{own}",
        "--ping",
        f"--providers.http.endpoint={table}",
        f"--providers.http.pollInterval={_POLL_SECONDS:g}s",
        "--providers.providersThrottleDuration=0s",
        "--global.checkNewVersion=false",
        "--global.sendAnonymousUsage=false",
    ]
    process = Process([program, *options], port, home.log("traefik"), f"http://{HOST}:{own}/ping")
    process.start()
    try:
        yield f"{HOST}:{port}"
    finally:
        process.end(kill=True)
