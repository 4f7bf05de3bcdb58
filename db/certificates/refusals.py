"""Which certificates proxies do not take over, as their own words say why."""

from collections.abc import Collection
from typing import Any

from psycopg import Connection

_MOST_CHARACTERS = 300
# by the name of the secret that it is among proxies, as db/proxies/secured.py makes it
_IS_NAMED = "d.id = c.deployment_id AND d.name || '/' || c.kind || '/' || c.name = ANY(%(names)s)"
_NOTE = f"""
    UPDATE certificates c SET refused = %(why)s FROM deployments d
     WHERE {_IS_NAMED} AND c.refused IS DISTINCT FROM %(why)s
"""


def note_refused(connection: Connection[Any], names: Collection[str], why: str | None) -> None:
    """Note why a proxy did not take these over; None: it does now."""
    connection.execute(_NOTE, {"names": sorted(names), "why": why and why[:_MOST_CHARACTERS]})
