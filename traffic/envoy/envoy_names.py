"""Names of Envoy's resources: its route table, the clusters of a deployment, a header, and a cookie."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

ROUTE_CONFIGURATION = "rollway"
"""The name of the route table; the bootstrap's listener asks for it."""
PREVIEW_HEADER = "x-rollway-preview"
"""A request with it, unless its value is "false", goes to the revision that is being rolled out."""
MIRROR_STATISTICS = "rollway_mirror"
"""Statistics of clusters that get copies begin so; no deployment's name has an underscore."""
STOOD_IN = "!"
"""The suffix of the id of a revision whose request another revision answered."""
_AS_IN_A_FILE = "type.googleapis.com/xds.type.v3.TypedStruct"
COOKIE_SECONDS = 7 * 86_400
"""The lifetime of the cookie of a canary."""

_SIDES = _PREVIEW, _CANARY, _BASELINE, _MIRROR = "preview", "canary", "baseline", "mirror"

PAGES = "envoy.filters.http.lua"
"""The place of a deployment's pages in a route's metadata, where the script of the bootstrap finds them too."""


def page_key(status: str) -> str:
    return f"page_{status}"


def cookie_of(rollout: UUID) -> str:
    """The name of the cookie of one canary. The last digits of an id are random; the first ones are a time."""
    return f"rollway-canary-{rollout.hex[-12:]}"


def preview_cluster(name: str) -> str:
    """The name of the cluster of the replicas that are not in traffic yet. No deployment's name has a slash."""
    return f"{name}/{_PREVIEW}"


def canary_cluster(name: str) -> str:
    """The name of the cluster of the replicas that get a canary's share."""
    return f"{name}/{_CANARY}"


def baseline_cluster(name: str) -> str:
    """The name of the cluster of the replicas that a canary is compared with."""
    return f"{name}/{_BASELINE}"


def mirror_cluster(name: str) -> str:
    """The name of the cluster of the replicas that get copies of requests."""
    return f"{name}/{_MIRROR}"


def on_wire(side: str, wire: str) -> str:
    """The name of the cluster of those replicas of a side that speak this protocol: web, or web/canary/http2."""
    return f"{side}/{wire}" if wire else side


def side_of(cluster: str) -> str:
    """The side that a cluster belongs to, by its own name where all speak the usual protocol: web/canary."""
    return _split(cluster)[0]


def wire_of(cluster: str) -> str:
    return _split(cluster)[1]


def _split(cluster: str) -> tuple[str, str]:
    name, _, rest = cluster.partition("/")
    side, _, wire = rest.partition("/")
    return (f"{name}/{side}", wire) if side in _SIDES else (name, rest)


def as_in_a_file(kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """A part of this kind in the form of Envoy's files: its newest fields need not be known here.

    `kind`: the URL of its type.
    """
    return {"@type": _AS_IN_A_FILE, "type_url": kind, "value": value}
