"""Entrances within each other: whoever takes one that lies in another deployment's takes part of its requests."""

from collections.abc import Iterable, Iterator

from domain.traffic.entrances import default_entrances
from domain.traffic.snapshot import Entrance, EntranceKind


def around(entrance: Entrance) -> tuple[Entrance, ...]:
    """The entrances that it lies in, the nearest first; not `/`, which takes only what nobody else takes.

    /web/login/         -> /web/
    a.web.example.com   -> web.example.com, *.web.example.com, example.com, *.example.com, com, *.com
    *.web.example.com   -> web.example.com, example.com, *.example.com, com, *.com
    """
    found = _prefixes(entrance.value) if entrance.kind is EntranceKind.PREFIX else _hosts(entrance.value)
    return tuple(Entrance(entrance.kind, value) for value in found)


def named_after(entrances: Iterable[Entrance]) -> dict[str, Entrance]:
    """The names of deployments that get one of these by default, whether or not they have it now."""
    found = {name: entrance for entrance in entrances for name in _names(entrance)}
    return {name: entrance for name, entrance in found.items() if _is_default(name, entrance)}


def _prefixes(prefix: str) -> Iterator[str]:
    while (prefix := prefix[: prefix.rfind("/", 0, -1) + 1]) not in {"/", ""}:
        yield prefix


def _hosts(host: str) -> Iterator[str]:
    is_wildcard, name = host.startswith("*."), host.removeprefix("*.")
    if is_wildcard:
        yield name
    while "." in name:
        name = name.partition(".")[2]
        yield from (name, f"*.{name}")


def _names(entrance: Entrance) -> tuple[str, ...]:
    if entrance.kind is EntranceKind.PREFIX:
        return (entrance.value[1:-1],)
    return entrance.value, entrance.value.removesuffix(".localhost")


def _is_default(name: str, entrance: Entrance) -> bool:
    return any((own.kind, own.value) == (entrance.kind, entrance.value) for own in default_entrances(name))
