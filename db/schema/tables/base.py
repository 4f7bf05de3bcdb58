"""What all tables share: the metadata with its names for constraints, and columns that recur."""

from sqlalchemy import Column, DateTime, ForeignKeyConstraint, MetaData, Uuid, text

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)


def new_id() -> Column[object]:
    """The key of a table: ids that come later are greater."""
    return Column("id", Uuid, primary_key=True, server_default=text("uuidv7()"))


def at(name: str, *, now: bool = False) -> Column[object]:
    """An instant; with `now` it is always there, by default the time of the insert."""
    default = text("clock_timestamp()") if now else None
    return Column(name, DateTime(timezone=True), nullable=not now, server_default=default)


def revision_of_deployment(column: str, deployment: str, *, later: bool = False) -> ForeignKeyConstraint:
    """A revision belongs to its deployment: both ids are referenced together."""
    return ForeignKeyConstraint([column, deployment], ["revisions.id", "revisions.deployment_id"], use_alter=later)
