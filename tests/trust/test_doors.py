"""Small doors: whose address is believed, how long a head may be, how short a memory, what a database must be."""

import socket
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import make_engine, transaction
from domain.installation.contract import UnfitServerError
from domain.installation.tokens import Role
from domain.text.errors import InvalidInputError
from stack.part_specs import Ready, StackPart
from stack.supervisor.child.supervised import Child
from tasks.task_settings import retention, settings
from tests.support.people.people_api import People
from tests.support.stack.waiting import eventually, meanwhile

NOT_READY = StackPart(
    name="slow", command=("sleep", "60"), cwd="/", ready=Ready("log", "never"), start_timeout=0.05, inherit_env=True
)


def test_who_says_to_ask_for_many_guesses_no_more_tokens_for_it(people_server: People) -> None:
    """On this machine anybody is believed who says for whom he asks; who was let in before is held up by nobody."""
    with people_server.client(Role.VIEWER) as known, people_server.stranger() as guessing:
        assert known.get("/v1/deployments").status_code == 200
        told = [
            guessing.get(
                "/v1/deployments", headers={"authorization": f"Bearer {uuid4()}", "x-forwarded-for": f"10.0.0.{number}"}
            ).status_code
            for number in range(250)
        ]
        assert set(told) == {401, 429}
        assert told.index(429) < 200
        assert known.get("/v1/deployments").status_code == 200


def test_who_guesses_keeps_nobody_out_who_shows_a_right_token(people_server: People) -> None:
    """From the same address: tokens that were never shown before are let in, and who logs in sees the page."""
    secrets = [people_server.token(Role.VIEWER) for _ in range(12)]
    with people_server.stranger() as guessing, people_server.stranger() as coming:
        told = list[int]()

        def guess() -> bool:
            answer = guessing.get("/v1/deployments", headers={"authorization": f"Bearer {uuid4()}"})
            told.append(answer.status_code)
            return told[-1] == 429

        eventually(guess, what="so many were wrong that they are refused")
        with meanwhile(guess, 0.005):
            for secret in secrets[:10]:
                shown = {"authorization": f"Bearer {secret}"}
                assert coming.get("/v1/deployments", headers=shown).status_code == 200
            for secret in secrets[10:]:
                assert coming.post("/login", data={"token": secret}).status_code == 303
                assert coming.get("/").status_code == 200
        assert told.count(429) > told.count(200) == 0


@pytest.mark.parametrize(("length", "told"), [(15_000, b"200"), (17_000, b"400"), (120_000, b"400")])
def test_a_head_in_one_piece_is_not_longer_than_one_in_many(people_server: People, length: int, told: bytes) -> None:
    head = b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Long: " + length * b"x" + b"\r\n\r\n"
    with socket.create_connection(("127.0.0.1", people_server.server.port), timeout=10) as connection:
        connection.sendall(head)
        answer = connection.recv(4096)
    assert answer.split(b" ")[1] == told


def test_where_commands_are_signed_their_ids_are_known_for_as_long_as_a_signature_is_good(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in (("REDIS_URL", "redis://h"), ("ROLLWAY_KEEP_COMMANDS_DAYS", "0.05")):
        monkeypatch.setenv(name, value)
    for keys, is_refused in (("", False), (str(tmp_path / "keys"), True)):
        monkeypatch.setenv("ROLLWAY_COMMAND_KEYS", keys)
        for read in (settings, retention):
            read.cache_clear()
        if is_refused:
            with pytest.raises(InvalidInputError, match=r"must be 0\.1 or more where commands are signed"):
                retention()
        else:
            assert retention().commands_days == 0.05
    for read in (settings, retention):
        read.cache_clear()


def test_a_database_that_keeps_no_utf_8_is_told_so(database: str) -> None:
    name = f"ascii_{uuid4().hex[:8]}"
    with psycopg.connect(database, autocommit=True) as connection:
        how = "ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0"
        connection.execute(f"CREATE DATABASE {name} {how}")
    url = f"{database.rpartition('/')[0]}/{name}"
    made = make_engine(DatabaseSettings(url=url.replace("postgresql://", "postgresql+psycopg://")))
    with pytest.raises(UnfitServerError, match="keeps text as SQL_ASCII; Rollway needs one in UTF8"), transaction(made):
        pass
    made.dispose()


def test_a_part_that_was_not_ready_in_time_gets_more_of_it_each_time(tmp_path: Path) -> None:
    child, said = Child(NOT_READY, tmp_path / "log"), list[str]()
    for _ in range(5):
        child.start(lambda: None)
        eventually(lambda: _has_failed(child))
        said.append(child.error)
        child.error = ""
    assert child.part.start_timeout == 0.05
    assert child._patience == 0.4, said


def _has_failed(child: Child) -> bool:
    child.check()
    return child.error != ""
