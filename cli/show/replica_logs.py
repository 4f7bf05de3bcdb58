"""What replicas print, on this host and on others, read on again and again."""

import os
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from cli.remote import remote
from cli.servers import ask_hosts_for_logs
from db.views.routes import RouteView
from domain.replicas.placement import EXTERNAL
from runtime.process.logs import LogPiece, ProcessLogs
from stack.home.folder import find_home
from stack.supervisor.replicas import host_of

Pieces = dict[UUID, LogPiece]
_ASKED_AGAIN_SECONDS = 10.0


@dataclass(slots=True)
class ReplicaLogs:
    """Reads on. `places`: how far each was read; `silent`: hosts that do not answer, and when each is asked again."""

    deployment_id: UUID
    lines: int
    home: Path = field(default_factory=lambda: find_home(os.environ).root)
    places: dict[UUID, int] = field(default_factory=dict)
    silent: dict[str, float] = field(default_factory=dict)

    @property
    def here(self) -> str | None:
        """The host whose logs are the files of this home; None: a server is asked for those of all hosts."""
        return host_of(self.home) if remote() is None else None

    def read_on(self, routes: Collection[RouteView]) -> Pieces:
        """What is new of each replica; nothing of one whose log cannot be read now."""
        local = ProcessLogs(self.home)
        pieces: Pieces = {}
        elsewhere: dict[str, dict[UUID, int | None]] = {}
        for route in routes:
            if local.path(route.id).exists():
                pieces[route.id] = local.read_on(route.id, self.places.get(route.id), self.lines)
            elif route.host not in (None, self.here, EXTERNAL):
                elsewhere.setdefault(str(route.host), {})[route.id] = self.places.get(route.id)
        pieces |= self._asked(elsewhere)
        self.places |= {route_id: piece.place for route_id, piece in pieces.items()}
        return pieces

    def _asked(self, elsewhere: dict[str, dict[UUID, int | None]]) -> Pieces:
        """A host that was silent is left alone for a while, so that it does not hold up the others."""
        asked = {host: places for host, places in elsewhere.items() if self.silent.get(host, 0) <= time.monotonic()}
        answers = ask_hosts_for_logs(self.deployment_id, asked, self.lines) if asked else {}
        for host in asked:
            if host in answers:
                self.silent.pop(host, None)
            else:
                self.silent[host] = time.monotonic() + _ASKED_AGAIN_SECONDS
        return {route_id: piece for pieces in answers.values() for route_id, piece in pieces.items()}
