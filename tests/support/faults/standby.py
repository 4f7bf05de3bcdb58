"""A PostgreSQL and its standby, which streams from it and takes its place once it is promoted."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from stack.part_specs import Ready
from stack.parts.postgres import DATABASE, ROLE, postgres_part, prepare_data, run_program, single_user
from stack.parts.postgres_account import ServerAccount, choose_account, installed_tree
from tests.support.stack.ports import free_port
from tests.support.stack.servers import EmbeddedServer, on_port, url_of_port

_PASSWORD = "for-tests-only"


@dataclass(frozen=True)
class Pair:
    """Both servers. `url` names both, as libpq takes it: the one that may be written to is meant."""

    primary: EmbeddedServer
    standby: EmbeddedServer
    url: str
    _account: ServerAccount
    _data: Path

    def promote(self) -> None:
        """Let the standby be the primary from now on, and wait until it is."""
        data = self._account.data_argument(self._data)
        run_program(self._data, self._account, self._account.command("pg_ctl", "promote", "-w", "-D", data))


@contextmanager
def postgres_with_standby(folder: Path) -> Iterator[Pair]:
    """Both running, with an empty database; they end with the test."""
    account = choose_account(installed_tree())
    primary, port = _primary(folder / "primary", account)
    primary.start()
    try:
        standby, data = _standby(folder / "standby", account, primary.url)
        standby.start()
        login = f"{ROLE}:{_PASSWORD}"
        second = standby.url.rpartition("@")[2].partition("/")[0]
        url = f"postgresql://{login}@127.0.0.1:{port},{second}/{DATABASE}?target_session_attrs=read-write"
        try:
            yield Pair(primary, standby, url, account, data)
        finally:
            standby.stop()
    finally:
        primary.stop()


def _primary(folder: Path, account: ServerAccount) -> tuple[EmbeddedServer, int]:
    folder.mkdir(parents=True)
    data, port = prepare_data(folder, account, _PASSWORD, durable=False), free_port()
    single_user(data, account, [f"ALTER ROLE {ROLE} REPLICATION"], DATABASE)
    part = on_port(postgres_part(data, account, fsync=False), port)
    return EmbeddedServer(part, url_of_port(port, _PASSWORD), folder / "postgres.log"), port


def _standby(folder: Path, account: ServerAccount, primary: str) -> tuple[EmbeddedServer, Path]:
    data, port = folder / "data", free_port()
    data.mkdir(parents=True, mode=0o700)
    if account.user is not None:
        os.chown(data, account.user, account.user)
    copied = ("-D", account.data_argument(data), "-d", primary, "-R", "-X", "stream", "-c", "fast", "--no-sync")
    run_program(data, account, account.command("pg_basebackup", *copied))
    part = on_port(postgres_part(data, account, fsync=False), port)
    part = replace(part, ready=Ready("log", "database system is ready to accept read-only connections"))
    return EmbeddedServer(part, url_of_port(port, _PASSWORD), folder / "postgres.log"), data
