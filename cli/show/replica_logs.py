"""What replicas print on this host, read on again and again."""

import os
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from db.views.routes import RouteView
from runtime.process_logs import LogPiece, ProcessLogs
from stack.home import find_home
from stack.supervisor.replicas import host_of

Pieces = dict[UUID, LogPiece]


@dataclass(slots=True)
class ReplicaLogs:
    """Reads on. `places`: how far each was read; `elsewhere`: hosts that others run on."""

    lines: int
    home: Path = field(default_factory=lambda: find_home(os.environ).root)
    places: dict[UUID, int] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)

    def read_on(self, routes: Collection[RouteView]) -> Pieces:
        """What is new of each replica; nothing of one whose log cannot be read from here."""
        here, local = host_of(self.home), ProcessLogs(self.home)
        pieces: Pieces = {}
        for route in routes:
            if local.path(route.id).exists():
                pieces[route.id] = local.read_on(route.id, self.places.get(route.id), self.lines)
            elif route.host not in (None, here):
                self.elsewhere.add(str(route.host))
        self.places |= {route_id: piece.place for route_id, piece in pieces.items()}
        return pieces
