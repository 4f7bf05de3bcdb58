"""A secret to look for, and what a host says of references."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from sqlalchemy import Engine

from domain.revisions.secret_refs import SecretReference
from runtime.host_secrets import HostSecrets
from tasks.hosts.heartbeat import Heartbeat, keep_showing_signs_of_life
from tasks.hosts.secret_checks import keep_answering
from tests.support.rows.deployments import read as rows_of
from tests.support.workers.replicas import SERVICE

VALUE = "hunter2"
NONE = "it cannot be read: No such file or directory"


def read(secrets: HostSecrets, reference: str, deployment: str = "web") -> str:
    """The value."""
    return secrets.value_of(SecretReference(secret=reference), deployment)


def fault(secrets: HostSecrets, reference: str, deployment: str = "web") -> str:
    """Why there is none, which never tells anything of what was read."""
    told = secrets.fault_of(SecretReference(secret=reference), deployment)
    assert told is not None
    assert VALUE not in told
    return told


@contextmanager
def answering(engine: Engine, secrets: HostSecrets) -> Iterator[None]:
    """A worker of the host, as far as secrets go."""
    until = Event()
    answers = keep_answering(engine, secrets, until)
    signs = keep_showing_signs_of_life(
        Heartbeat(engine, secrets.host, "127.0.0.1", when_secrets_are_wanted=answers.ring), until
    )
    try:
        yield
    finally:
        until.set()
        answers.ring()
        for thread in (*answers.threads, signs):
            thread.join()


def checks(engine: Engine) -> list[tuple[object, ...]]:
    """Each host, whether it has looked since it was asked, and why it cannot have the secret."""
    rows = rows_of(engine, "SELECT host, checked_at IS NOT NULL AS looked, fault FROM host_secrets ORDER BY host")
    return [tuple(row.values()) for row in rows]


def referring(folder: Path, **more: Any) -> dict[str, Any]:
    """A service that says what it got as VERSION."""
    return {**SERVICE, "env": {"VERSION": {"secret": f"file:{folder}/db"}}, **more}
