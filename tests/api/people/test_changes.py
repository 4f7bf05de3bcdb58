"""The reader of changes continues whatever fails, and who is slow is ended rather than waited for."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import LiteralString

import anyio
import pytest
from sqlalchemy import Engine

from api.people.streams import change_feed
from api.people.streams.change_feed import MOST_WAITING, ChangeReader, Listener
from db.connection.transactions import in_transaction
from domain.installation.tokens import Role, Token
from tests.support.rows.deployments import make_deployment
from tests.support.rows.sent_statements import sent_by
from tests.support.stack.waiting import eventually

_ANN = Token(name="ann", role=Role.VIEWER, created_by="bob", created_at=datetime.now(UTC))
_SAID: LiteralString = "UPDATE deployments SET reason = %s WHERE name = 'web'"
_WITHIN = 20.0


def write(engine: Engine, statement: LiteralString, *values: object) -> None:
    in_transaction(engine, lambda connection: connection.execute(statement, values))


@asynccontextmanager
async def reading(engine: Engine) -> AsyncIterator[ChangeReader]:
    """A reader that has read once."""
    reader = ChangeReader(engine)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader.run)
        await until(lambda: reader.fault is None)
        yield reader
        tasks.cancel_scope.cancel()


async def until(condition: Callable[[], bool]) -> None:
    await asyncio.to_thread(eventually, condition, _WITHIN)


async def heard(listener: Listener) -> str:
    piece = await asyncio.wait_for(listener.queue.get(), _WITHIN)
    return (piece or b"").decode()


@pytest.mark.parametrize("table", ["tokens", "deployments"])
def test_what_cannot_be_read_for_a_while_ends_no_news(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, table: LiteralString
) -> None:
    monkeypatch.setattr(change_feed, "_VALID_SECONDS", 0.0)
    make_deployment(engine, "■■■")
    write(engine, "INSERT INTO tokens (name, hash, role, created_by) VALUES ('ann', sha256('x'), 'viewer', 'bob')")

    async def work() -> None:
        async with reading(engine) as reader:
            listener = reader.listen(_ANN, None)
            write(engine, f"ALTER TABLE {table} RENAME TO away")
            await until(lambda: reader.fault is not None)
            write(engine, f"ALTER TABLE away RENAME TO {table}")
            write(engine, _SAID, "after that")
            reader.read_soon()
            assert "after that" in await heard(listener)

    anyio.run(work)


def test_a_change_of_the_whole_fleet_ends_nobody_who_listens(engine: Engine) -> None:
    fleet = "INSERT INTO deployments (name, desired_replicas) SELECT 'service-' || n, 3 FROM generate_series(0, %s) n"
    write(engine, fleet, MOST_WAITING)

    async def work() -> None:
        async with reading(engine) as reader:
            listener, limited = reader.listen(_ANN, None), reader.listen(_ANN, "service-7")
            write(engine, "UPDATE deployments SET reason = 'all at once'")
            reader.read_soon()
            assert (await heard(listener)).count("event: deployment") == MOST_WAITING + 1
            assert (await heard(limited)).count("event: deployment") == 1
            assert reader.listeners == {listener, limited}

    anyio.run(work)


def test_who_takes_nothing_is_ended_and_catches_up_from_what_was_heard_last(engine: Engine) -> None:
    make_deployment(engine, "■")

    async def work() -> None:
        async with reading(engine) as reader:
            slow, before = reader.listen(_ANN, None), reader.cursor
            while not slow.is_behind:
                slow.queue.put_nowait(b"not taken")
            write(engine, _SAID, "told to nobody")
            await until(lambda: slow not in reader.listeners)
            pieces = [slow.queue.get_nowait() for _ in range(slow.queue.qsize())]
            assert pieces[-1] is None
            missed = await reader.missed(reader.listen(_ANN, None), before)
            assert "told to nobody" in missed.decode()

    anyio.run(work)


def test_nothing_is_read_while_nobody_listens_and_who_comes_then_misses_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_feed, "_REST_SECONDS", 0.0)
    make_deployment(engine, "■")
    sent = sent_by(engine)

    async def work() -> None:
        reader = ChangeReader(engine)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader.run)
            await asyncio.sleep(3 * change_feed._READ_SECONDS)
            assert sent == []
            listener = reader.listen(_ANN, None)
            await reader.begins()
            assert reader.fault is None
            write(engine, _SAID, "told")
            assert "told" in await heard(listener)
            before = reader.cursor
            reader.leave(listener)
            await until(lambda: not reader._is_current.is_set())
            write(engine, _SAID, "meanwhile")
            again = reader.listen(_ANN, None)
            await reader.begins()
            assert "meanwhile" in (await reader.missed(again, before)).decode()
            tasks.cancel_scope.cancel()

    anyio.run(work)


def test_all_who_come_back_after_the_same_event_are_told_of_one_read(engine: Engine) -> None:
    make_deployment(engine, "■")

    async def work() -> None:
        async with reading(engine) as reader:
            sent, elsewhere = sent_by(engine), f"another-{reader.cursor.partition('-')[2]}"
            streams = [reader.listen(_ANN, None) for _ in range(20)]
            told = await asyncio.gather(*(reader.missed(stream, elsewhere) for stream in streams))
            assert len(set(told)) == 1
            assert sum("LATERAL (SELECT * FROM deployment_history" in statement for statement in sent) == 1
            write(engine, _SAID, "a moment later")
            assert "a moment later" in await heard(streams[0])
            late = reader.listen(_ANN, None)
            assert "a moment later" in (await reader.missed(late, elsewhere)).decode()

    anyio.run(work)
