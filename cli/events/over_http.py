"""Events as the server tells them: its stream of server-sent events."""

import json
from collections.abc import Callable, Iterator, Sequence

from cli.events.heard import BEGUN, Heard
from cli.remote import Remote


def listening_over_http(server: Remote, names: Sequence[str] | None) -> Callable[[str | None], Iterator[Heard]]:
    """Events of these deployments, or of all that the token is for; see `lasting`."""
    parameters = {"deployment": names[0]} if names and len(names) == 1 else {}

    def listen(last: str | None) -> Iterator[Heard]:
        headers = {"last-event-id": last} if last else {}
        fields: dict[str, str] = {}
        for line in server.lines("/v1/events", parameters, headers):
            name, _, value = line.partition(": ")
            if line:
                fields[name] = value
                continue
            heard = Heard(fields.get("id", ""), fields.get("event", BEGUN), json.loads(fields.get("data", "{}")))
            if heard.kind == BEGUN or names is None or heard.deployment in names:
                yield heard
            fields = {}

    return listen
