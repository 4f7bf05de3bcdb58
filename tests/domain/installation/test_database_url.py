"""URLs of PostgreSQL, in every form that its tools document, and the address that people are shown."""

import pytest

from domain.installation.settings import database_address, libpq_url

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("url", "libpq", "address"),
    [
        (f"postgresql://u:{SECRET}@h1/db", None, "h1:5432/db"),
        (f"postgres://u:{SECRET}@h1:6/db", f"postgresql://u:{SECRET}@h1:6/db", "h1:6/db"),
        (f"postgresql+psycopg://u:{SECRET}@[::1]:6/db", f"postgresql://u:{SECRET}@[::1]:6/db", "[::1]:6/db"),
        (f"postgresql://u:{SECRET}@h1:5,h2/db?target_session_attrs=read-write", None, "h1:5,h2:5432/db"),
        (f"postgresql://u:{SECRET}@h1/db?host=h1,h2&port=5,6", None, "h1:5,h2:6/db"),
        (f"postgresql://u:{SECRET}@h1/db?host=h1,h2&port=5", None, "h1:5,h2:5/db"),
        (
            f"postgresql://u:{SECRET}@/db?host=h1:5&host=h2&sslmode=require",
            f"postgresql://u:{SECRET}@/db?sslmode=require&host=h1%2Ch2&port=5%2C5432",
            "h1:5,h2:5432/db",
        ),
        (f"postgresql://u:{SECRET}@/db?host=/run/postgresql", None, "/run/postgresql:5432/db"),
        (f"postgresql://u:{SECRET}@%2Frun%2Fpostgresql/db", None, "/run/postgresql:5432/db"),
        (f"postgresql://u:12/{SECRET}@db/x", None, "the address of DATABASE_URL"),
        (f"u:{SECRET}@db/x", None, ":5432/"),
        ("", None, ":5432/"),
        ("postgresql", None, ":5432/"),
        (f"mysql://u:{SECRET}@h1:6/db", None, "h1:6/db"),
        (
            f"postgresql://u:{SECRET}@/db?host=h1:5&options=",
            f"postgresql://u:{SECRET}@/db?options=&host=h1&port=5",
            "h1:5/db",
        ),
        (
            f"postgresql://u:{SECRET}@/db?host=h1&host=h2",
            f"postgresql://u:{SECRET}@/db?host=h1%2Ch2&port=5432%2C5432",
            "h1:5432,h2:5432/db",
        ),
        (
            f"postgresql://u:{SECRET}@/db?host=h1&host=h2&port=9",
            f"postgresql://u:{SECRET}@/db?host=h1%2Ch2&port=9%2C9",
            "h1:9,h2:9/db",
        ),
        (
            f"postgresql://u:{SECRET}@/db?host=h1&port=8&host=h2:7&host=h3&port=9&port=10",
            f"postgresql://u:{SECRET}@/db?host=h1%2Ch2%2Ch3&port=8%2C7%2C10",
            "h1:8,h2:7,h3:10/db",
        ),
        (
            f"postgresql://u:{SECRET}@/db?host=[::1]:6",
            f"postgresql://u:{SECRET}@/db?host=%5B%3A%3A1%5D&port=6",
            "[::1]:6/db",
        ),
        (f"postgresql://u:{SECRET}@/db?host=[::1]", None, "[::1]:5432/db"),
        (f"postgresql://u:{SECRET}@/db?host=/run/a:b", None, "/run/a:b:5432/db"),
        (f"postgresql://u:{SECRET}@h1:/db", None, "h1:5432/db"),
        (f"postgresql://u:p@{SECRET}@h1/my%20db", None, "h1:5432/my db"),
        (f"postgresql://u:{SECRET}@h1/db?dbname=other&host=", None, "h1:5432/other"),
        (f"postgresql://u:{SECRET}@h1/db?port=7", None, "h1:7/db"),
        (f"postgresql://u:{SECRET}@h1:7?host=h2", None, "h2:7/"),
    ],
)
def test_every_form_is_read_and_its_address_shown_without_the_password(
    url: str, libpq: str | None, address: str
) -> None:
    assert libpq_url(url) == (libpq or url)
    assert database_address(url) == address
    assert SECRET not in database_address(url)
