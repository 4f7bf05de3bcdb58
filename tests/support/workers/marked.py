"""Values that are looked for everywhere: in the stores, in what is written down, in pages and in processes."""

import base64
import binascii
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psutil
import redis
from sqlalchemy import Engine, text

from tests.support.stack.waiting import eventually

_BASE64 = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")


def marks(kind: str, count: int) -> list[str]:
    return [f"{kind}-{number}-{uuid4().hex}" for number in range(count)]


def found_in(marked: Iterable[str], content: str) -> list[str]:
    """Which of them stand there, be it encoded as Kombu encodes what it sends."""
    decoded = "".join(filter(None, map(_decoded, _BASE64.findall(content))))
    return [mark for mark in marked if mark in content or mark in decoded]


def _decoded(found: str) -> str:
    try:
        return base64.b64decode(found, validate=True).decode(errors="replace")
    except binascii.Error:
        return ""


def dump_of(engine: Engine) -> str:
    """Every row of every table."""
    with engine.connect() as connection:
        names = connection.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).scalars().all()
        return "\n".join(
            row
            for name in names
            for row in connection.execute(text(f'SELECT to_jsonb(t)::text FROM "{name}" t')).scalars()
        )


def files_of(folder: Path) -> str:
    """All files below it: logs, records of replicas."""
    return "\n".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


def processes(pids: Iterable[int]) -> str:
    """The environments and the titles of these processes."""
    return "\n".join(str((psutil.Process(pid).environ(), psutil.Process(pid).cmdline())) for pid in pids)


@contextmanager
def heard(redis_url: str) -> Iterator[list[str]]:
    """All that is sent to this Valkey meanwhile: what waits there for a moment only, too."""
    # of its own, for an answer may take as long as it likes: while a test starts something, nobody sends anything
    client = redis.Redis.from_url(redis_url, socket_timeout=None)
    lines: list[str] = []
    end = f"the end {uuid4().hex}"

    def listen() -> None:
        with client.monitor() as monitor:  # type: ignore[no-untyped-call]
            lines.append("begun")
            for command in monitor.listen():
                lines.append(str(command["command"]))
                if end in lines[-1]:
                    return

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    eventually(lambda: lines)
    try:
        yield lines
    finally:
        client.echo(end)
        thread.join(10)
        client.close()
