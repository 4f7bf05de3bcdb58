"""A real PgBouncer in front of Postgres, which gives each transaction whichever session is free."""

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url

from tests.support.stack.ports import free_port
from tests.support.stack.waiting import eventually

MISSING = (
    "NO PGBOUNCER, SO NO POOLER STANDS BEFORE POSTGRESQL HERE: 'make pgbouncer' unpacks that of Debian, without root"
)

_CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={to.port} user={to.username} password={to.password}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 8
{more}
"""


@contextmanager
def pgbouncer(database: str, folder: Path, more: str = "") -> Iterator[str]:
    """The URL of this database behind it. `more`: lines of its configuration. Skips the test where there is none."""
    unpacked = Path(sys.prefix) / "pgbouncer"
    found = shutil.which(f"{unpacked}/usr/sbin/pgbouncer") or shutil.which("pgbouncer")
    if found is None:
        pytest.skip(MISSING)
    port, file = free_port(), folder / "pgbouncer.ini"
    file.write_text(_CONFIGURATION.format(to=make_url(database), port=port, more=more))
    libraries = ":".join(map(str, unpacked.glob("usr/lib/*-linux-gnu")))
    with (folder / "pgbouncer.log").open("wb") as log:
        server = subprocess.Popen(
            [found, str(file)],
            stderr=log,
            env={**os.environ, "LD_LIBRARY_PATH": libraries},
            user=pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None,
        )
    try:
        eventually(lambda: b"process up" in (folder / "pgbouncer.log").read_bytes(), what="the pooler to listen")
        yield make_url(database).set(port=port).render_as_string(hide_password=False)
    finally:
        server.kill()
        server.wait()
