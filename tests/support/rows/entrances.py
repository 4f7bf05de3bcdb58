"""Where a deployment is reached, as the database says it."""

from functools import partial
from uuid import UUID

from psycopg.types.json import Jsonb
from sqlalchemy import Engine

from db.certificates import want
from db.connection.transactions import in_transaction, transaction
from db.proxies.traffic_reader import read_traffic
from domain.traffic.snapshot import RequestRules, stored_together
from domain.traffic.tls import TlsSettings, wanted_certificates
from tests.support.rows.deployments import read, write

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


def set_tls(engine: Engine, deployment_id: UUID, settings: TlsSettings | None, hosts: tuple[str, ...]) -> None:
    """Have a deployment want certificates for these hosts, as `set_traffic` does it."""
    wanted = wanted_certificates(settings, hosts)
    in_transaction(engine, partial(want, deployment_id=deployment_id, certificates=wanted))
    rules = Jsonb(stored_together(RequestRules(tls=settings)))
    write(engine, "UPDATE deployments SET rules = %s WHERE id = %s", rules, deployment_id)
