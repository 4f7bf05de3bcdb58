"""What has ended for the whole fleet: tokens, freezes, and hosts that never came back."""

from collections import Counter
from collections.abc import Mapping
from typing import LiteralString

from psycopg import Connection
from psycopg.rows import scalar_row

from domain.installation.settings import Retention

_BEFORE: LiteralString = "clock_timestamp() - make_interval(secs => %s * 86400)"

_ENDED: Mapping[str, LiteralString] = {
    "tokens": "DELETE FROM tokens WHERE expires_at < " + _BEFORE,
    "freezes": "DELETE FROM freezes WHERE ends_at < " + _BEFORE,
}
_LONG_DOWN: LiteralString = "SELECT name FROM hosts WHERE down_since < " + _BEFORE + " ORDER BY name LIMIT 10"


def cut_ended(connection: Connection, retention: Retention) -> Counter[str]:
    """Cut tokens and freezes that ended long ago; returns how many of each."""
    return Counter({table: connection.execute(cut, (retention.ended_days,)).rowcount for table, cut in _ENDED.items()})


def hosts_long_down(connection: Connection, retention: Retention) -> list[str]:
    """Hosts that have been down for so long that they may be forgotten, some of them."""
    cursor = connection.cursor(row_factory=scalar_row)
    return cursor.execute(_LONG_DOWN, (retention.ended_days,)).fetchall()
