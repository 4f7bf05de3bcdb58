import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from stack.parts.external_servers import check_database, check_redis
from stack.stack_errors import StackError
from tests.support.stack.ports import free_port
from tests.support.stack.servers import embedded_postgres, embedded_redis

SECRET = "hunter2"


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with embedded_postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server.url


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with embedded_redis(tmp_path_factory.mktemp("valkey")) as server:
        yield server.url


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def refused(check: object, url: str) -> str:
    started = time.monotonic()
    with pytest.raises(StackError) as caught:
        check(url)  # type: ignore[operator]
    assert time.monotonic() - started < 30
    assert SECRET not in str(caught.value)
    return str(caught.value)


def test_a_good_server_is_told_by_host_port_and_database(postgres: str, valkey: str) -> None:
    assert check_database(postgres) == f"127.0.0.1:{urlsplit(postgres).port}/rollway"
    assert check_database(postgres.replace("postgresql:", "postgresql+psycopg:"))
    assert check_redis(valkey) == f"127.0.0.1:{urlsplit(valkey).port}/0"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        (f"mysql://u:{SECRET}@db:1/x", "DATABASE_URL starts with 'mysql://': it should look like postgresql"),
        (f"u:{SECRET}@db/x", "DATABASE_URL has no scheme: it should look like"),
        (f"postgresql://u:{SECRET}@db:no/x", "DATABASE_URL is not an address"),
        (f"postgresql://u:12/{SECRET}@db/x", "DATABASE_URL: write /, ? and # in a password as"),
        (f"postgresql://u:{SECRET}@/x", "DATABASE_URL names no host"),
        (f"postgresql://u:{SECRET}@nowhere.invalid/x", "PostgreSQL at nowhere.invalid:5432 cannot be reached: "),
    ],
)
def test_an_address_that_cannot_be_right_is_told_without_its_password(url: str, sentence: str) -> None:
    assert sentence in refused(check_database, url)
    refused(check_redis, url.replace("postgresql", "redis"))


def test_a_server_that_is_not_there_is_told_with_host_and_port() -> None:
    port = free_port()
    assert f"PostgreSQL at 127.0.0.1:{port} cannot be reached: nothing listens there" in refused(
        check_database, f"postgresql://u:{SECRET}@127.0.0.1:{port}/x"
    )
    assert f"Redis at 127.0.0.1:{port} cannot be reached: nothing listens there" in refused(
        check_redis, f"redis://:{SECRET}@127.0.0.1:{port}/0"
    )


def test_a_server_that_says_nothing_is_given_up_after_seconds(silent: int) -> None:
    assert "did not answer within 3 s" in refused(check_database, f"postgresql://u:{SECRET}@127.0.0.1:{silent}/x")
    assert "does not answer as Redis does" in refused(check_redis, f"redis://:{SECRET}@127.0.0.1:{silent}/0")


def test_a_wrong_password_and_a_missing_database_are_told_apart(postgres: str, valkey: str) -> None:
    port = urlsplit(postgres).port
    assert f"127.0.0.1:{port}/rollway refuses the user or password" in refused(
        check_database, f"postgresql://rollway:{SECRET}@127.0.0.1:{port}/rollway"
    )
    assert f"127.0.0.1:{port}/absent has no such database" in refused(
        check_database, postgres.replace("/rollway", "/absent").replace("//absent", "//rollway")
    )
    assert "refuses the user or password" in refused(
        check_redis, f"redis://:{SECRET}@127.0.0.1:{urlsplit(valkey).port}/0"
    )
    assert "refuses the user or password" in refused(check_redis, f"redis://127.0.0.1:{urlsplit(valkey).port}/0")
    assert "refuses the database number" in refused(check_redis, valkey.replace("/0", "/99"))


def test_the_wrong_kind_of_server_is_told(postgres: str) -> None:
    assert "does not answer as Redis does" in refused(check_redis, f"redis://127.0.0.1:{urlsplit(postgres).port}/0")


def test_an_old_redis_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_answer_as_redis_5, args=(server,), daemon=True).start()
        port = server.getsockname()[1]
        assert f"Redis at 127.0.0.1:{port}/0 is 5.0.14; Rollway needs 6.2 or newer" in refused(
            check_redis, f"redis://127.0.0.1:{port}/0"
        )


def _answer_as_redis_5(server: socket.socket) -> None:
    info = b"# Server\r\nredis_version:5.0.14\r\n"
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            while words := connection.recv(4096):
                commands = words.count(b"*")
                if b"INFO\r\n$6\r\nserver" in words:
                    connection.sendall(b"$%d\r\n%s\r\n" % (len(info), info))
                    continue
                connection.sendall(b"-ERR unknown command\r\n" * commands)
