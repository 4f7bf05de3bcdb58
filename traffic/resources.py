"""The resources that Envoy subscribes to; versions are hashes, so two servers with one table agree on them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ResourceKind(StrEnum):
    """The parts of Envoy's configuration, in the order in which they are sent."""

    CLUSTERS = "clusters"
    ENDPOINTS = "endpoints"
    ROUTES = "routes"
    LISTENERS = "listeners"
    SECRETS = "secrets"


@dataclass(frozen=True, slots=True)
class Resource:
    """A cluster, the endpoints of a cluster, a route configuration, a listener or a secret; or an entry of one.

    `content`: proto3 JSON.

    `entries`: those of its field `list_field`, in groups that are kept or made again together; `content` lacks them.
    `version`: a hash of all that. `is_left`: whether it is a cluster to which no route of its table leads.
    """

    version: str
    content: Mapping[str, Any]
    list_field: str = ""
    entries: Mapping[str, tuple["Resource", ...]] = field(default_factory=dict)
    is_left: bool = False


Named = Mapping[str, Resource]


@dataclass(frozen=True, slots=True)
class Resources:
    """All resources of a table, by kind and name. `version`: a hash of them all."""

    version: str
    by_kind: Mapping[ResourceKind, Named]


NO_RESOURCES = Resources("", {kind: {} for kind in ResourceKind})


@dataclass(frozen=True, slots=True)
class Watermark:
    """A table that a proxy may know. `number` counts the tables of this server; `seen`: the table's snapshot."""

    number: int
    seen: str
    version: str


def resource(content: Mapping[str, Any]) -> Resource:
    return Resource(_short_hash(json.dumps(content, separators=(",", ":"), sort_keys=True).encode()), content)


def listing(content: Mapping[str, Any], list_field: str, entries: Mapping[str, tuple[Resource, ...]]) -> Resource:
    """A resource of this content, and of these entries of its field `list_field`."""
    versions = [entry.version for group in entries.values() for entry in group]
    return Resource(
        _short_hash("\n".join((resource(content).version, *versions)).encode()), content, list_field, entries
    )


def together(by_kind: Mapping[ResourceKind, Named]) -> Resources:
    parts = sorted(f"{kind}/{name}={resource.version}" for kind in by_kind for name, resource in by_kind[kind].items())
    return Resources(_short_hash("\n".join(parts).encode()), by_kind)


def made_anew(before: Resources, after: Resources) -> set[str]:
    """The earlier clusters that a proxy drops or makes again: it no longer reports what is under way there."""
    old, new = (each.by_kind[ResourceKind.CLUSTERS] for each in (before, after))
    if old is new:
        return set()
    return {
        name for name, was in old.items() if (now := new.get(name)) is not was and was.content != (now and now.content)
    }


def _short_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
