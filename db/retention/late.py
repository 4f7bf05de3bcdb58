"""What should have been cut days ago, looked for page by page: nobody cuts, or others keep more."""

from collections.abc import Iterator
from functools import partial

from sqlalchemy import Engine

from db.connection.engine import in_transaction
from db.retention.cut import commands_to_cut, page_of_past
from domain.installation.settings import Retention


def late_cuts(engine: Engine, retention: Retention, days: float) -> Iterator[str]:
    """Say whose past, and whether request ids, should have been cut so many days ago. Page by page."""
    late = retention.model_copy(
        update={field: getattr(retention, field) + days for field in Retention.model_fields if field.endswith("_days")}
    )
    if commands := in_transaction(engine, partial(commands_to_cut, retention=late)):
        yield f"{commands} request ids should have been forgotten more than {days:g} days ago"
    deployments, last = 0, None
    while True:
        page = in_transaction(engine, partial(page_of_past, retention=late, after=last))
        deployments += len(page.ids)
        if page.last is None:
            break
        last = page.last
    if deployments:
        yield f"the past of {deployments} deployments should have been cut more than {days:g} days ago"
