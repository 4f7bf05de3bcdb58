"""The tables. Text with CHECKs rather than native enums; timestamptz everywhere; partial indexes for the looks."""

from sqlalchemy import DDL, event

from db.schema.guards import CEILING, FLOOR
from db.schema.tables import autoscaling, deployments, records, routes, traffic
from db.schema.tables.base import metadata

__all__ = ["autoscaling", "deployments", "metadata", "records", "routes", "traffic"]

for guard in (CEILING, FLOOR):
    event.listen(metadata, "after_create", DDL(guard))  # type: ignore[no-untyped-call] # SQLAlchemy leaves it so
