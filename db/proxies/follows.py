"""What follows from what proxies know: whether every live one knows a weight, or has let go of a replica."""

from typing import NamedTuple

from psycopg import Connection

from db.locking.rows import named_row
from db.proxies.acks import IS_LET_GO
from db.proxies.weights import IS_KNOWN

_FOLLOWS = f"""
    SELECT EXISTS (SELECT FROM rollouts o WHERE {IS_KNOWN}) AS weights,
           EXISTS (SELECT FROM routes r WHERE {IS_LET_GO}) AS drains
"""


class Follows(NamedTuple):
    """Whether there are weights that all know, and drains that all have seen, which nobody has noted yet."""

    weights: bool
    drains: bool


def what_follows(connection: Connection) -> Follows:
    """Look without a lock: who finds something looks again under the locks of its deployments."""
    (found,) = connection.cursor(row_factory=named_row(Follows)).execute(_FOLLOWS).fetchall()
    return found
