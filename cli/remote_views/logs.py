"""Logs of replicas over HTTP: the server asks their hosts."""

from collections.abc import Mapping
from uuid import UUID

from cli.remote import Remote
from cli.remote_views.asking import of_id
from runtime.process.logs import LogPiece
from tasks.hosts.log_asking import Pieces, Places

_MOST_PLACES = 2_000
"""So many a server takes at once."""


def logs_of(remote: Remote, deployment_id: UUID, asked: Mapping[str, Places], lines: int) -> dict[str, Pieces]:
    """By host what replicas of this deployment have printed; a host that does not answer is missing."""
    path = of_id(remote, deployment_id, "/logs")
    places = [{"route": str(route), "place": place} for each in asked.values() for route, place in each.items()]
    found: dict[str, Pieces] = {host: {} for host in asked}
    for begin in range(0, len(places), _MOST_PLACES):
        body = {"lines": lines, "places": places[begin : begin + _MOST_PLACES]}
        document = remote.ask("POST", path, json=body)
        for log in document["items"]:
            found.setdefault(log["host"], {})[UUID(log["route"])] = LogPiece(log["text"], log["place"])
        for host in document["silent"]:
            found.pop(host, None)
    return found
