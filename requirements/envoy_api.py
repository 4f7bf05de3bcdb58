"""Writes the descriptors of the messages of Envoy's API that are told on its stream; `make envoy-api` runs it.

What people annotate, and what only a code generator reads, is left out.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

ROOTS = (
    "envoy.config.cluster.v3.cluster_pb2",
    "envoy.config.endpoint.v3.endpoint_pb2",
    "envoy.config.listener.v3.listener_pb2",
    "envoy.config.route.v3.route_pb2",
    "envoy.extensions.filters.listener.tls_inspector.v3.tls_inspector_pb2",
    "envoy.extensions.retry.host.previous_hosts.v3.previous_hosts_pb2",
    "envoy.extensions.retry.priority.previous_priorities.v3.previous_priorities_config_pb2",
    "envoy.extensions.transport_sockets.tls.v3.tls_pb2",
    "envoy.extensions.upstreams.http.v3.http_protocol_options_pb2",
    "envoy.service.discovery.v3.discovery_pb2",
    "xds.type.v3.typed_struct_pb2",
)


def main() -> None:
    """Write them to the file that is named."""
    found: dict[str, FileDescriptorProto] = {}
    for root in ROOTS:
        add(import_module(root).DESCRIPTOR, found)
    Path(sys.argv[1]).write_bytes(FileDescriptorSet(file=found.values()).SerializeToString(deterministic=True))


def add(file: Any, found: dict[str, FileDescriptorProto]) -> None:  # noqa: ANN401  (protobuf's own)
    """The file behind those that it imports."""
    if file.name in found:
        return
    for imported in file.dependencies:
        add(imported, found)
    proto = FileDescriptorProto()
    file.CopyToProto(proto)
    for field in ("options", "service", "extension"):
        proto.ClearField(field)
    for message in proto.message_type:
        strip(message)
    for enum in proto.enum_type:
        strip_enum(enum)
    found[file.name] = proto


def strip(message: Any) -> None:  # noqa: ANN401  (protobuf's own)
    """Leave no option but those that say what a field is."""
    keep(message, "map_entry")
    for field in message.field:
        keep(field, "packed")
    for oneof in message.oneof_decl:
        oneof.ClearField("options")
    for enum in message.enum_type:
        strip_enum(enum)
    for nested in message.nested_type:
        strip(nested)


def strip_enum(enum: Any) -> None:  # noqa: ANN401  (protobuf's own)
    """Trim an enumeration likewise."""
    keep(enum, "allow_alias")
    for value in enum.value:
        value.ClearField("options")


def keep(described: Any, option: str) -> None:  # noqa: ANN401  (protobuf's own)
    """Keep this one of the options."""
    said = getattr(described.options, option) if described.options.HasField(option) else None
    described.ClearField("options")
    if said is not None:
        setattr(described.options, option, said)


if __name__ == "__main__":
    main()
