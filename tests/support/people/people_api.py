"""The server for people in a process of its own, and clients that show it tokens."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import httpx
from sqlalchemy import Engine

from db.access_tokens import create_token
from db.connection.transactions import in_transaction
from domain.installation.tokens import NewToken, Role
from tests.support.proxies import plain_http
from tests.support.rows.databases import engine_on
from tests.support.stack.ports import free_port
from tests.support.stack.server_process import Process, running


def people_process(database: str, redis_url: str, folder: Path, **environment: str) -> Process:
    port = free_port()
    environment = {
        "DATABASE_URL": database,
        "REDIS_URL": redis_url,
        "ROLLWAY_PEOPLE_PORT": str(port),
        "ROLLWAY_HOME": str(folder),
        "ROLLWAY_PEOPLE_RATE": "1000",
        **environment,
    }
    command = [sys.executable, "-m", "api.people"]
    return Process(command, port, folder / "people.log", f"http://127.0.0.1:{port}/livez", environment)


@dataclass
class People:
    """A running server, its database, and who asks it."""

    server: Process
    database: str
    engine: Engine = field(init=False)

    def __post_init__(self) -> None:
        self.engine = engine_on(self.database)

    def token(self, role: Role, *deployments: str, name: str = "", days: float | None = None) -> str:
        """The secret of a new one."""
        secret = uuid4().hex
        name = name or f"{role}-{secret[:6]}"
        new = NewToken(name=name, role=role, deployments=deployments, days=days, actor="test")
        in_transaction(self.engine, lambda connection: create_token(connection, new, secret))
        return secret

    def client(self, role: Role, *deployments: str, name: str = "") -> httpx.Client:
        """Whoever shows a new token."""
        shown = {"authorization": f"Bearer {self.token(role, *deployments, name=name)}"}
        return plain_http.Client(base_url=self.server.url, headers=shown, timeout=300)

    def stranger(self) -> httpx.Client:
        """Who shows none, and cookies as a browser does: on its own machine those too that are for TLS alone."""
        client = plain_http.Client(base_url=self.server.url, timeout=300)

        def show_cookies(request: httpx.Request) -> None:
            cookies = {cookie.name: cookie.value for cookie in client.cookies.jar}
            if cookies and "cookie" not in request.headers:
                request.headers["cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())

        client.event_hooks = {"request": [show_cookies]}
        return client


@contextmanager
def serving_people(database: str, redis_url: str, folder: Path, **environment: str) -> Iterator[People]:
    """Have a server for people run until the block ends."""
    server = people_process(database, redis_url, folder, **environment)
    with running(server):
        people = People(server, database)
        try:
            yield people
        finally:
            people.engine.dispose()
