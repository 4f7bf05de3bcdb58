"""Resources as Envoy's own messages, each made once: the table is JSON, the stream is protobuf.

The descriptors of Envoy's API are read from `envoy_api.binpb`: the packages that hold the generated modules bring
modules that other packages bring too, in older forms.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import grpc
from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from traffic.resources import Resource, ResourceKind, Resources

_FILE = Path(__file__).with_name("envoy_api.binpb")
SERVICE = "envoy.service.discovery.v3.AggregatedDiscoveryService"
METHOD = "DeltaAggregatedResources"


def _load_pool() -> DescriptorPool:
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(_FILE.read_bytes()).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


POOL = _load_pool()
"""The content of an Any is found here by the name of its type."""


def _message(name: str) -> Any:  # noqa: ANN401  (a class that protobuf makes)
    return GetMessageClass(POOL.FindMessageTypeByName(f"envoy.{name}"))


Cluster = _message("config.cluster.v3.Cluster")
ClusterLoadAssignment = _message("config.endpoint.v3.ClusterLoadAssignment")
Listener = _message("config.listener.v3.Listener")
RouteConfiguration = _message("config.route.v3.RouteConfiguration")
DiscoveryRequest = _message("service.discovery.v3.DeltaDiscoveryRequest")
DiscoveryResponse = _message("service.discovery.v3.DeltaDiscoveryResponse")
DiscoveryResource = _message("service.discovery.v3.Resource")
Secret = _message("extensions.transport_sockets.tls.v3.Secret")


def handler_of(serve: Callable[..., Any]) -> grpc.GenericRpcHandler:
    """The gRPC handler that calls `serve(requests, context)` for each stream."""
    method = grpc.stream_stream_rpc_method_handler(
        serve, DiscoveryRequest.FromString, DiscoveryResponse.SerializeToString
    )
    return grpc.method_handlers_generic_handler(SERVICE, {METHOD: method})


_TYPES: Mapping[ResourceKind, Any] = {
    ResourceKind.CLUSTERS: Cluster,
    ResourceKind.ENDPOINTS: ClusterLoadAssignment,
    ResourceKind.ROUTES: RouteConfiguration,
    ResourceKind.LISTENERS: Listener,
    ResourceKind.SECRETS: Secret,
}
TYPE_URLS = {
    kind: f"type.googleapis.com/{message_class.DESCRIPTOR.full_name}" for kind, message_class in _TYPES.items()
}
KINDS = {url: kind for kind, url in TYPE_URLS.items()}


class Made(NamedTuple):
    """A resource as an Envoy message. `entries`: the encoded entries in it, by their versions."""

    message: Any
    entries: Mapping[str, bytes]


Messages = Mapping[ResourceKind, Mapping[str, Made]]
"""The messages made of the resources, by kind and name."""
NO_MESSAGES: Messages = {kind: {} for kind in ResourceKind}


def messages_of(resources: Resources, before: Messages = NO_MESSAGES) -> Messages:
    """A message for each resource; one of the same version is taken from `before`."""
    return {
        kind: {
            name: old
            if (old := before[kind].get(name)) and old.message.version == resource.version
            else _message_of(kind, name, resource, old.entries if old else {})
            for name, resource in group.items()
        }
        for kind, group in resources.by_kind.items()
    }


def _message_of(kind: ResourceKind, name: str, resource: Resource, cached: Mapping[str, bytes]) -> Made:
    entries: dict[str, bytes] = {}
    message = DiscoveryResource(name=name, version=resource.version)
    message.resource.type_url = TYPE_URLS[kind]
    message.resource.value = _encoded(_TYPES[kind], resource, cached, entries)
    return Made(message, entries)


def _encoded(message_class: Any, resource: Resource, cached: Mapping[str, bytes], entries: dict[str, bytes]) -> bytes:  # noqa: ANN401  (a class that protobuf makes)
    """The message's bytes. Entries of a list may follow as they were encoded before, and are remembered."""
    own: bytes = message_class(**_fields(message_class.DESCRIPTOR, resource.content)).SerializeToString(
        deterministic=True
    )
    parts = [own]
    for entry in chain.from_iterable(resource.entries.values()):
        part = None if entry.entries else cached.get(entry.version)
        if part is None:
            kind = message_factory.GetMessageClass(
                message_class.DESCRIPTOR.fields_by_name[resource.list_field].message_type
            )
            within = kind.FromString(_encoded(kind, entry, cached, entries))
            part = message_class(**{resource.list_field: [within]}).SerializeToString(deterministic=True)
        if not entry.entries:
            entries[entry.version] = part
        parts.append(part)
    return b"".join(parts)


def _fields(descriptor: Descriptor, content: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a message's constructor: in a third of the time of `ParseDict`, which checks every value."""
    makers = _makers(descriptor)
    return {name: make(value) if (make := makers[name]) else value for name, value in content.items()}


@cache
def _makers(descriptor: Descriptor) -> Mapping[str, Callable[[Any], Any] | None]:
    """The function that makes each field's value from JSON; None where it is the same."""
    return {field.name: _maker(field) for field in descriptor.fields}


def _maker(field: FieldDescriptor) -> Callable[[Any], Any] | None:
    inner = field.message_type
    if inner is None:
        return None
    if not inner.GetOptions().map_entry:
        convert = _made_as(inner)
        return lambda value: [convert(entry) for entry in value] if isinstance(value, list) else convert(value)
    of = inner.fields_by_name["value"].message_type
    return None if of is None else lambda entries: {key: _parsed(of, json.dumps(entries[key])) for key in entries}


def _made_as(descriptor: Descriptor) -> Callable[[Any], Any]:
    if descriptor.full_name.startswith("google.protobuf."):
        return lambda value: _parsed(descriptor, json.dumps(value))
    return lambda value: _fields(descriptor, value)


@lru_cache(maxsize=4096)
def _parsed(descriptor: Descriptor, value: str) -> Message:
    """Durations, limits and the contents of an Any or a Struct recur often, so they are cached."""
    return ParseDict(json.loads(value), message_factory.GetMessageClass(descriptor)(), descriptor_pool=POOL)
