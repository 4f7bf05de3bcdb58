"""The table that proxies get, from the database or over HTTP."""

from psycopg import Connection

from cli.remote import Remote
from cli.remote_views.asking import made
from db.proxies.table import read_traffic
from traffic.table import TrafficTable, derive_table


def table_shown(connection: Connection) -> TrafficTable:
    """As the server for proxies derives it."""
    return derive_table(read_traffic(connection))


def table_over_http(remote: Remote) -> TrafficTable:
    """The table of the deployments that the token is for."""
    return made(TrafficTable, remote.get("/v1/traffic"))
