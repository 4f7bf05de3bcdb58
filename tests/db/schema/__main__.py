"""`make schema`: what the migrations make, into migrations/schema.json, from a real Postgres."""

import tempfile
from pathlib import Path

from migrations.schema import EXPECTED
from tests.support.rows.databases import copy_of, engine_on, migrated_template, schema_written
from tests.support.stack.servers import embedded_postgres


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        embedded_postgres(Path(folder)) as server,
        copy_of(migrated_template(server), server) as url,
    ):
        engine = engine_on(url)
        EXPECTED.write_text(schema_written(engine), encoding="utf-8")
        engine.dispose()


if __name__ == "__main__":
    main()
