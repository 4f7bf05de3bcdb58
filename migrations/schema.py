"""The schema of a database: which migration it has seen, and its way to the newest."""

import json
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine

EXPECTED = Path(__file__).with_suffix(".json")
"""Each part of the schema that all migrations leave, with the statement that makes it; `make schema` writes it."""


def configuration() -> Config:
    """Alembic's, for the migrations that lie beside this file: in a clone and in an installed package."""
    config = Config()
    folder = str(Path(__file__).resolve().parent)
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def upgrade(engine: Engine) -> tuple[str | None, str | None]:
    """Run every migration that the database lacks, in one transaction; its number before and after, such as "0002".

    None: no migration has been there. Another upgrade that is under way is waited for.
    """
    before = number(engine)
    config = configuration()
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    return before, number(engine)


def expected() -> dict[str, str]:
    """Each part that all migrations leave, as `db.audit.schema_faults` reads it from a database."""
    parts: dict[str, str] = json.loads(EXPECTED.read_text(encoding="utf-8"))
    return parts


def newest() -> str:
    """The number of the last migration that there is here."""
    return str(ScriptDirectory.from_config(configuration()).get_current_head())


def number(engine: Engine) -> str | None:
    """The number of the last migration that the database says it has seen; None: none. Should it name several, all."""
    with engine.connect() as connection:
        return ", ".join(MigrationContext.configure(connection).get_current_heads()) or None


def is_known(number: str | None) -> bool:
    """Whether there is a migration of that number here, or the database has seen none."""
    scripts = ScriptDirectory.from_config(configuration()).walk_revisions()
    return number is None or number in {script.revision for script in scripts}
