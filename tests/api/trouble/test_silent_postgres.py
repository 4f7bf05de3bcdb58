"""Postgres' processes are suspended, not dead: the server for proxies says so, and continues with new ones."""

import os
import signal
from contextlib import suppress
from typing import Any

from sqlalchemy import Engine

from tests.support.proxies import plain_http
from tests.support.rows.databases import CLEANER
from tests.support.rows.deployments import read
from tests.support.stack.server_process import Process
from tests.support.stack.waiting import eventually

WAITING = """
    SELECT pid FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event = 'ClientRead' AND application_name <> %s
"""
"""Those that wait for their client: one stopped at its work could hold a lock for which all others would wait."""


def test_a_silent_postgres_makes_the_table_stale_and_is_left_for_another_process(api: Process, engine: Engine) -> None:
    def health() -> dict[str, Any]:
        return dict(plain_http.get(f"{api.url}/healthz").json())

    eventually(lambda: health()["status"] == "ok")
    suspended: set[int] = set()

    def suspend() -> bool:
        """Those too that the server has begun since: with one of them it would go on unnoticed."""
        for pid in {int(row["pid"]) for row in read(engine, WAITING, CLEANER)} - suspended:
            suspended.add(pid)
            _tell(pid, signal.SIGSTOP)
        return str(health()["status"]) == "stale"

    try:
        eventually(suspend, what="it to be noticed")
        eventually(lambda: health()["status"] == "ok" and health()["table_age_seconds"] < 5, what="a new connection")
    finally:
        for pid in suspended:
            _tell(pid, signal.SIGCONT)


def _tell(pid: int, what: signal.Signals) -> None:
    """One that has ended since it was listed stands still by itself; the others must be woken anyway."""
    with suppress(ProcessLookupError):
        os.kill(pid, what)
