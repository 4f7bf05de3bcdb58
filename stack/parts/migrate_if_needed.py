"""`python -m stack.parts.migrate_if_needed`: `rollway migrate`, where there is something to migrate.

To look takes less time than to load all that can migrate.
"""

import os
import sys

import psycopg

from domain.installation.settings import libpq_url
from stack.home.folder import project_root

_TIMEOUT = 3


def main() -> None:
    """Look, and become `rollway migrate` where something is to do, or to be said."""
    if not has_newest(os.environ["DATABASE_URL"]):
        os.execv(sys.executable, [sys.executable, "-m", "cli.main", "migrate"])  # noqa: S606 -- ourselves


def has_newest(url: str) -> bool:
    """Whether the database has the newest schema; a migration that is under way has not ended."""
    try:
        with psycopg.connect(libpq_url(url), connect_timeout=_TIMEOUT) as connection:
            rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    except psycopg.Error:
        return False
    return rows == [(newest(),)]


def newest() -> str:
    """The number of the last migration, which its file's name begins with."""
    return max(file.name for file in (project_root() / "migrations" / "versions").glob("*.py")).partition("_")[0]


if __name__ == "__main__":
    main()
