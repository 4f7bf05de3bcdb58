"""Whether the Postgres that we are connected to is one that Rollway works with. It has told its version already."""

from typing import Any

import psycopg

from domain.installation.servers import UnfitServerError, refuse_encoding, refuse_old_postgres


def refuse_unfit(connection: psycopg.Connection[Any], address: str) -> None:
    """Close a new connection to a server that does not do, and raise UnfitServerError."""
    try:
        refuse_old_postgres(connection.info.server_version, address)
        refuse_encoding(connection.info.parameter_status("server_encoding") or "UTF8", address)
    except UnfitServerError:
        connection.close()
        raise
