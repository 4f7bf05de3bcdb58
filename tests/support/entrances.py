"""Where a deployment is reached, as the database says it."""

from sqlalchemy import Engine

from db.engine import transaction
from db.proxies.table import read_traffic
from tests.support.deployments import read

DEFAULTS = ["host web", "host web.localhost", "prefix /web/"]


def entrances(engine: Engine, name: str = "web") -> list[str]:
    """Of the deployment that is not destroyed, as proxies are told."""
    with transaction(engine) as connection:
        found = next(one for one in read_traffic(connection).deployments if one.name == name)
    return [f"{one.kind} {one.value}{'' if one.strip_prefix else ' passed on'}" for one in found.entrances]


def timeout_of(engine: Engine) -> float | None:
    (row,) = read(engine, "SELECT request_timeout_seconds FROM deployments WHERE name = 'web'")
    timeout: float | None = row["request_timeout_seconds"]
    return timeout
