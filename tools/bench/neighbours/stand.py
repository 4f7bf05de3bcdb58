"""A whole stack, as `rollway up` starts it, on which neighbours and people stand."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from sqlalchemy import Engine

from db.access_tokens import create_token
from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import in_transaction, make_engine
from domain.installation.tokens import NewToken, Role
from runtime.process.accounts import EACH
from stack.down import down
from stack.home.folder import Home
from stack.home.server_settings import load_settings
from stack.home.stack_state import read_state
from stack.prepare import UpRequest
from stack.supervisor.stop import stop_replicas
from stack.up import up

WORKERS = 2
"""As many as `rollway up` starts on two cores."""

ROLLING = {"strategy": "rolling_update", "spec": {}}


@dataclass(frozen=True)
class Stand:
    """The servers of the stack, and tokens for whoever asks them. `folder`: where secrets lie that hosts give out."""

    people_url: str
    envoy_url: str
    engine: Engine
    folder: Path

    def token(self, role: Role, *deployments: str) -> str:
        """The secret of a new one."""
        secret = uuid4().hex
        name = f"{role}-{secret[:8]}"
        new = NewToken(name=name, role=role, deployments=deployments, days=1, actor="bench")
        in_transaction(self.engine, lambda connection: create_token(connection, new, secret))
        return secret

    def client(self, role: Role, *deployments: str) -> httpx.Client:
        """Whoever shows a new token."""
        shown = {"authorization": f"Bearer {self.token(role, *deployments)}"}
        return httpx.Client(base_url=self.people_url, headers=shown, trust_env=False, timeout=60)

    def stranger(self) -> httpx.Client:
        """Who shows none."""
        return httpx.Client(base_url=self.people_url, trust_env=False, timeout=60)

    def deploy(self, name: str, command: Sequence[str], replicas: int, role: Role, **spec: Any) -> None:  # noqa: ANN401
        """A deployment with one revision, `v1`, added by a token of this role for it alone, and activated."""
        with self.client(Role.ADMIN) as admin, self.client(role, name) as owner:
            admin.post("/v1/deployments", json={"deployment": name, "desired_replicas": replicas}).raise_for_status()
            admin.put(f"/v1/deployments/{name}/policy", json={"policy": ROLLING}).raise_for_status()
            self.add(owner, name, "v1", command=command, **spec)
            owner.post(f"/v1/deployments/{name}/activate", json={"revision": "v1"}).raise_for_status()

    def add(self, owner: httpx.Client, deployment: str, revision: str, **spec: Any) -> None:  # noqa: ANN401
        """A revision."""
        added = owner.post(f"/v1/deployments/{deployment}/revisions", json={"name": revision, "spec": spec})
        if added.is_error:
            raise RuntimeError(added.text)


@contextmanager
def stand() -> Iterator[Stand]:
    """Start all, with an account for each deployment; end all, and delete it."""
    if os.geteuid() != 0:
        raise SystemExit("only root may change the user: without accounts there is no wall to measure behind")
    root = Path(tempfile.mkdtemp(prefix="rollway-neighbours-"))
    root.chmod(0o755)
    folder, home = root / "secrets", Home(root / ".rollway")
    folder.mkdir()
    allowed = f"file:{folder},command:/bin/sleep"
    environ = {"ROLLWAY_REPLICA_USER": EACH, "ROLLWAY_SECRETS_ALLOW": allowed}
    with ExitStack() as left:
        left.callback(shutil.rmtree, root, ignore_errors=True)
        left.callback(down, home, lambda _: None, stop_replicas)
        up(UpRequest(home=home, environ=environ, workers=WORKERS), lambda _: None)
        settings, state = load_settings(home), read_state(home)
        assert settings
        assert state
        engine = make_engine(DatabaseSettings(url=state.database_url.replace("postgresql://", "postgresql+psycopg://")))
        left.callback(engine.dispose)
        ports = settings.ports
        yield Stand(f"http://127.0.0.1:{ports.people}", f"http://127.0.0.1:{ports.envoy}", engine, folder)
