"""The embedded servers one at a time, for tests and demos: started in about a second, killed and restarted at will."""

import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import psutil

from runtime.machine.identity import identify, send
from stack.home.server_settings import HOST
from stack.part_specs import StackPart
from stack.parts.postgres import DATABASE, ROLE, postgres_part, prepare_data, single_user
from stack.parts.postgres_account import choose_account, installed_tree
from stack.parts.valkey import valkey_part
from stack.stack_errors import StackError
from stack.supervisor.child.supervised import Child
from stack.supervisor.stop import end_process
from tests.support.stack.ports import free_port

_PASSWORD = "for-tests-only"

# What tests and measurements do and the product never does; all else is done as the role that users get.
_FOR_TESTS: tuple[str, ...] = (
    f"ALTER ROLE {ROLE} CREATEDB",
    # a password that costs nothing: a test connects more often than it does anything else
    "SET scram_iterations = 1",
    f"ALTER ROLE {ROLE} PASSWORD '{_PASSWORD}'",
    f"GRANT pg_checkpoint TO {ROLE}",
    # a test's database is dropped while autovacuum may be at work in it
    f"GRANT pg_signal_backend, pg_signal_autovacuum_worker TO {ROLE}",
    f"GRANT SET ON PARAMETER session_replication_role TO {ROLE}",
    f"GRANT ALTER SYSTEM ON PARAMETER log_lock_waits, deadlock_timeout TO {ROLE}",
    f"GRANT EXECUTE ON FUNCTION pg_reload_conf() TO {ROLE}",
)


class EmbeddedServer:
    """A server on one port and folder for its whole life: it may be stopped, killed and started again."""

    def __init__(self, part: StackPart, url: str, log: Path) -> None:
        self.url = url
        self._part = part
        self._log = log
        self._child: Child | None = None

    @property
    def pid(self) -> int:
        """The pid of the server. Raises StackError when it does not run."""
        process = self._child.state().process if self._child else None
        if process is None:
            raise StackError(f"{self._part.name} does not run.")
        return process.pid

    def start(self) -> None:
        """Start it and wait until it answers. Raises StackError after the part's start timeout."""
        child = Child(self._part, self._log)
        deadline = time.monotonic() + self._part.start_timeout
        while not child.ready:
            due = child.waiting_until
            if due is not None and due <= time.monotonic():
                child.start(lambda: None)
            child.check()
            if time.monotonic() > deadline:
                end_process(child.state().process, signal.SIGKILL, 5)
                child.reap()
                raise StackError(f"{self._part.name} does not start: {child.error} (its log is {self._log}).")
            time.sleep(0.01)
        self._child = child

    def stop(self) -> None:
        """Stop it in good order; nothing happens when it does not run."""
        if self._child is None:
            return
        end_process(self._child.state().process, self._part.stop_signal, self._part.grace)
        self._child.reap()
        self._child = None

    def kill(self) -> None:
        """End it with SIGKILL, its own children too, as a power cut would."""
        server = psutil.Process(self.pid)
        family = [identify(process.pid) for process in (server, *server.children(recursive=True))]
        for process in family:
            send(process, signal.SIGKILL)
        for process in family:
            end_process(process, signal.SIGKILL, 5)
        self.stop()


@contextmanager
def embedded_postgres(
    folder: Path, *, fsync: bool = False, environment: Mapping[str, str] | None = None, also_at: str = ""
) -> Iterator[EmbeddedServer]:
    """A PostgreSQL with its data in `folder` and an empty database `rollway`; stopped at the end.

    `also_at`: one more address to listen at, besides the one of its URL, to whoever has an address near it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    account = choose_account(installed_tree())
    data = prepare_data(folder, account, _PASSWORD, durable=fsync)
    single_user(data, account, _FOR_TESTS, DATABASE)
    port = free_port()
    part = on_port(postgres_part(data, account, fsync=fsync), port, also_at)
    part = replace(part, env={**part.env, **(environment or {})})
    if also_at:
        with (data / "pg_hba.conf").open("a", encoding="utf-8") as rules:
            rules.write(f"host all all {ip_network(f'{also_at}/24', strict=False)} scram-sha-256\n")
    yield from _while_running(EmbeddedServer(part, url_of_port(port, _PASSWORD), folder / "postgres.log"))


def on_port(postgres: StackPart, port: int, also_at: str = "") -> StackPart:
    """The server, listening on a port too: some tests cut a network, or put a pooler, between it and its clients."""
    addresses = ",".join(filter(None, (HOST, also_at)))
    return replace(postgres, command=(*postgres.command, "-c", f"listen_addresses={addresses}", "-c", f"port={port}"))


def url_of_port(port: int, password: str) -> str:
    """The address of the database of such a server."""
    return f"postgresql://{ROLE}:{password}@{HOST}:{port}/{DATABASE}"


@contextmanager
def embedded_redis(folder: Path, *, also_at: str = "") -> Iterator[EmbeddedServer]:
    """A Valkey with its append-only file in `folder`; stopped at the end. `also_at`: as above."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    part = valkey_part(folder, _PASSWORD)
    addresses = filter(None, (HOST, also_at))
    part = replace(part, command=(*part.command, "--port", str(port), "--bind", *addresses))
    url = f"redis://:{_PASSWORD}@{HOST}:{port}/0"
    yield from _while_running(EmbeddedServer(part, url, folder / "valkey.log"))


def _while_running(server: EmbeddedServer) -> Iterator[EmbeddedServer]:
    server.start()
    try:
        yield server
    finally:
        server.stop()
