"""TCP ports that lead to the embedded servers' Unix sockets, for services that need one; none unless asked for."""

import sys
from collections.abc import Sequence
from pathlib import Path

from stack.home.folder import project_root
from stack.home.settings import HOST, ServerSettings
from stack.home.sockets import POSTGRES_SOCKET
from stack.plan import External, Ready, StackPart


def forwarding_parts(settings: ServerSettings, external: Sequence[External]) -> tuple[StackPart, ...]:
    """A part for each port that is asked for; servers of somebody else have ports of their own."""
    sockets = settings.named_sockets
    targets = {"postgres": sockets.postgres / POSTGRES_SOCKET, "redis": sockets.valkey, "discovery": sockets.discovery}
    theirs = {server.name for server in external}
    return tuple(
        _forwarding(name, port, targets[name])
        for name, port in sorted(settings.ports.forwarded.items())
        if name not in theirs
    )


def _forwarding(name: str, port: int, target: Path) -> StackPart:
    return StackPart(
        name=f"{name}-port",
        command=(sys.executable, "-m", "stack.forward", str(target)),
        cwd=str(project_root()),
        ready=Ready("port", str(port)),
        address=f"{HOST}:{port}",
        listens=(HOST, port),
        grace=2.0,
    )
