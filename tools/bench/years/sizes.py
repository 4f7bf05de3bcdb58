"""What could grow: tables, the database, logs, Valkey, and processes in memory. A sample is a row of numbers."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
import redis
from psycopg import sql

from runtime.machine.identity import Identity
from stack.home.folder import Home
from stack.home.stack_state import read_state

_TABLES = """
    SELECT c.relname, pg_total_relation_size(c.oid) FROM pg_class c
     WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the numbers come from, each opened once."""

    home: Home
    postgres: psycopg.Connection[Any]
    valkey: redis.Redis

    def sample(self) -> dict[str, int]:
        """By name: "rows of X", "bytes of X", "files in X" and what else there is to count."""
        return {**self._tables(), **self._folders(), **self._memory(), **self._processes()}

    def _tables(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for name, size in self.postgres.execute(_TABLES).fetchall():
            ((rows,),) = self.postgres.execute(
                sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(name))
            ).fetchall()
            found |= {f"rows of {name}": rows, f"bytes of {name}": size}
        ((database,),) = self.postgres.execute("SELECT pg_database_size(current_database())").fetchall()
        return {**found, "bytes of the database": database}

    def _folders(self) -> Mapping[str, int]:
        stack, replicas = self.home.root / "logs", self.home.root / "logs" / "replicas"
        records = self.home.root / "replicas"
        return {
            "bytes of logs of the stack": sum(_files(stack).values()),
            "bytes of logs of replicas": sum(_files(replicas).values()),
            "files in logs of replicas": len(_files(replicas)),
            "files in records of replicas": len(_files(records)),
        }

    def _memory(self) -> Mapping[str, int]:
        memory: Any = self.valkey.info("memory")
        keys: Any = self.valkey.dbsize()
        return {"bytes of Valkey": int(memory["used_memory"]), "keys in Valkey": int(keys)}

    def _processes(self) -> Mapping[str, int]:
        """The resident memory of each part, without replicas and what else it started; 0 while one is restarted."""
        state = read_state(self.home)
        parts = state.parts if state else ()
        return {f"memory of {part.name}": _resident(part.process) for part in parts if part.process}


def _resident(process: Identity) -> int:
    with suppress(psutil.Error):
        return int(psutil.Process(process.pid).memory_info().rss)
    return 0


def _files(folder: Path) -> dict[str, int]:
    """The sizes of the files in a folder, without those of folders in it."""
    sizes: dict[str, int] = {}
    if not folder.is_dir():
        return sizes
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            if path.is_file():
                sizes[path.name] = path.stat().st_size
    return sizes
