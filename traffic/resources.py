"""What proxies subscribe to: resources, whose versions are hashes, so that two servers with one table agree on them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ResourceKind(StrEnum):
    """The part of its configuration that a proxy asks for; the value stands in the path of its request."""

    CLUSTERS = "clusters"
    ROUTES = "routes"
    ENDPOINTS = "endpoints"


@dataclass(frozen=True, slots=True)
class Subscription:
    """What one poll asks for. All clusters are one subscription, without a name."""

    kind: ResourceKind
    name: str = ""


CLUSTERS = Subscription(ResourceKind.CLUSTERS)


@dataclass(frozen=True, slots=True)
class Resource:
    """The content of a subscription. `version`: a hash of it. `answer`: a DiscoveryResponse as JSON."""

    version: str
    answer: bytes


@dataclass(frozen=True, slots=True)
class Resources:
    """All resources of one table. `version`: a hash of them all."""

    version: str
    by_subscription: Mapping[Subscription, Resource]


def resource(type_url: str, content: list[dict[str, Any]]) -> Resource:
    """A resource of this content, each part with its type."""
    typed = [{"@type": type_url, **part} for part in content]
    body = json.dumps(typed, separators=(",", ":"), sort_keys=True).encode()
    version = _short_hash(body)
    head = json.dumps({"version_info": version, "type_url": type_url}, separators=(",", ":")).encode()
    return Resource(version, b'%s,"resources":%s}' % (head[:-1], body))


def together(by_subscription: Mapping[Subscription, Resource]) -> Resources:
    """All resources, with the version of the table that they are."""
    parts = sorted(f"{key.kind}/{key.name}={content.version}" for key, content in by_subscription.items())
    return Resources(_short_hash("\n".join(parts).encode()), by_subscription)


def _short_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
