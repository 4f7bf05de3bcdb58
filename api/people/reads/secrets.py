"""Whether hosts can have the secrets that a revision will refer to, before anything of it is written."""

from psycopg import Connection

from api.people.asking.asked import Asked
from api.people.reads.deployments import Document, valid_name
from db.connection.engine import engine
from tasks.hosts.secret_checks import ask_hosts


def secrets(_: Connection, asked: Asked) -> Document:
    """What hosts say of secrets, for a deployment of this name, which need not exist yet."""
    return {"deployment": valid_name(asked.deployment)}


def as_hosts_say(asked: Asked, _: Document) -> Document:
    """Ask each host that is up, for 8 s at most."""
    return {"items": ask_hosts(engine(), asked.parameters.references)}
