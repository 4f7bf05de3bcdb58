"""Lists a page at a time: every row comes once, in order, on pages of any size; a cursor of nobody is refused."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg import Connection
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.views.pages import Page, deployments_page, history_page, revisions_page, rollouts_page
from db.views.timeline import hidden_differences
from domain.revisions.revision import RevisionSpec
from domain.text.errors import InvalidInputError
from tests.support.rows.deployments import ask, make_deployment

By = Callable[[Connection, UUID, str, int], Page[Any]]
_PAGES: tuple[By, ...] = (revisions_page, rollouts_page, history_page)


def all_of(engine: Engine, read: Callable[..., Page[Any]]) -> list[list[Any]]:
    """The items of each page, until there is no next one."""
    pages: list[list[Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = in_transaction(engine, partial(read, cursor=cursor))
        pages.append(list(page.items))
        cursor = page.next
    return pages


def worked(engine: Engine) -> UUID:
    """A deployment with some revisions, three rollouts and what was noted of them."""
    made = make_deployment(engine, "■", n=1)
    for revision in ("v3", "v4", "v5"):
        ask(engine, "add_revision", actor="ann", deployment="web", name=revision, spec={"command": [revision]})
        ask(engine, "activate_revision", actor="ann", deployment="web", revision=revision, supersede=True)
    return made.id


@pytest.mark.parametrize("limit", [1, 2])
def test_every_row_comes_once_and_the_newest_first(engine: Engine, limit: int) -> None:
    deployment = worked(engine)
    for page in _PAGES:
        comes_once(engine, partial(by, page, deployment), limit)


def by(page: By, deployment: UUID, limit: int, connection: Connection, cursor: str) -> Page[Any]:
    return page(connection, deployment, cursor, limit)


def comes_once(engine: Engine, page: Callable[..., Page[Any]], limit: int) -> None:
    (whole,), pages = all_of(engine, partial(page, 100)), all_of(engine, partial(page, limit))
    assert len(whole) >= 3
    assert [row for rows in pages for row in rows] == whole
    assert [len(rows) for rows in pages[:-1]] == [limit] * (len(pages) - 1)
    dates = [getattr(row, "created_at", None) or row.started_at for row in whole]
    assert dates == sorted(dates, reverse=True)


@pytest.mark.parametrize("limit", [1, 2])
def test_deployments_come_by_name_and_only_those_that_were_asked_for(engine: Engine, limit: int) -> None:
    for name in ("cart", "api", "blog"):
        make_deployment(engine, "■■|◇", name=name)
    found = all_of(engine, partial(deployments_page, names=None, limit=limit))
    assert [view.name for views in found for view in views] == ["api", "blog", "cart"]
    some = all_of(engine, partial(deployments_page, names=["cart", "gone", "api"], limit=limit))
    assert [view.name for views in some for view in views] == ["api", "cart"]
    begun = all_of(engine, partial(deployments_page, names=None, limit=limit, prefix="bl"))
    assert [view.name for views in begun for view in views] == ["blog"]


def test_revisions_whose_names_begin_so_are_found_and_compared(engine: Engine) -> None:
    made = make_deployment(engine, "■", n=1, spec={"command": ["serve"], "env": {"A": "1", "B": "1"}})
    other = RevisionSpec.model_validate({"command": ["serve"], "env": {"A": "2", "B": "1"}})
    ask(engine, "add_revision", deployment="web", name="new", spec=other.model_dump(mode="json"))
    found = in_transaction(engine, partial(revisions_page, deployment=made.id, cursor="", limit=9, prefix="ne"))
    hidden = in_transaction(engine, partial(hidden_differences, deployment_id=made.id, before="v1", after="new"))
    assert ([revision.name for revision in found.items], hidden) == (["new"], ["A"])


@pytest.mark.parametrize(
    ("page", "cursor"),
    [
        (revisions_page, "two"),
        (rollouts_page, "2"),
        (history_page, "yesterday"),
        (history_page, f"yesterday/{UUID(int=1)}"),
        (history_page, "2026-01-01T00:00:00+00:00/last"),
    ],
)
def test_a_cursor_that_no_page_gave_is_refused_by_name(engine: Engine, page: By, cursor: str) -> None:
    with pytest.raises(InvalidInputError, match="cursor: must be the `next` of the page before"):
        in_transaction(engine, lambda connection: page(connection, uuid4(), cursor, 10))
