"""Where a deployment is reached, as the database says it."""

from sqlalchemy import Engine

from db.connection.engine import transaction
from db.proxies.table import read_traffic
from tests.support.rows.deployments import read

DEFAULTS = ["host web", "host web.localhost", "prefix /web/"]


def entrances(engine: Engine, name: str = "web") -> list[str]:
    """Of the deployment that is not destroyed, as proxies are told."""
    with transaction(engine) as connection:
        told = next(deployment for deployment in read_traffic(connection).deployments if deployment.name == name)
    return [
        f"{entrance.kind} {entrance.value}{'' if entrance.strip_prefix else ' passed on'}"
        for entrance in told.entrances
    ]


def timeout_of(engine: Engine) -> float | None:
    (row,) = read(engine, "SELECT request_timeout_seconds FROM deployments WHERE name = 'web'")
    timeout: float | None = row["request_timeout_seconds"]
    return timeout
