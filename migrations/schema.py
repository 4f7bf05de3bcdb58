"""The schema of a database: which migration it has seen, and its way to the newest."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine


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
    before = _number(engine)
    config = configuration()
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    return before, _number(engine)


def _number(engine: Engine) -> str | None:
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()
