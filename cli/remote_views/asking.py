"""Asking the server: paths of deployments, pages of lists, and documents made values again."""

from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import TypeAdapter

from cli.remote import Remote

T = TypeVar("T")
_PAGE = 500
_ADAPTERS: dict[object, TypeAdapter[Any]] = {}


def path_of(name: str) -> str:
    """The path of the deployment of that name."""
    return f"/v1/deployments/{quote(name, '')}"


def of_id(remote: Remote, deployment_id: object, more: str = "") -> str:
    """Deployments are asked for by their names; whoever knows an id has read the name first."""
    return f"{path_of(remote.names[str(deployment_id)])}{more}"


def pages(remote: Remote, path: str, limit: int | None = None) -> list[dict[str, Any]]:
    """The items of as many pages as it takes."""
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while limit is None or len(found) < limit:
        page = remote.get(path, limit=min(_PAGE, limit - len(found)) if limit else _PAGE, cursor=cursor)
        found += page["items"]
        cursor = page["next"]
        if cursor is None:
            break
    return found


def made(kind: type[T], document: object) -> T:
    """The document as such a value. What a later release of the server adds is passed over."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    made: T = _ADAPTERS[kind].validate_python(document)
    return made
