"""Envoy's own messages, as its API describes them: of descriptors that are read from a file beside this one.

The packages that hold the generated modules bring modules that other packages bring too, in older forms.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

_FILE = Path(__file__).with_name("envoy_api.binpb")
SERVICE = "envoy.service.discovery.v3.AggregatedDiscoveryService"
METHOD = "DeltaAggregatedResources"


def _read() -> DescriptorPool:
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(_FILE.read_bytes()).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


POOL = _read()
"""What stands in an Any is found here by its type's name."""


def _message(name: str) -> Any:  # noqa: ANN401  (a class that protobuf makes)
    return GetMessageClass(POOL.FindMessageTypeByName(f"envoy.{name}"))


Cluster = _message("config.cluster.v3.Cluster")
ClusterLoadAssignment = _message("config.endpoint.v3.ClusterLoadAssignment")
Listener = _message("config.listener.v3.Listener")
RouteConfiguration = _message("config.route.v3.RouteConfiguration")
DiscoveryRequest = _message("service.discovery.v3.DeltaDiscoveryRequest")
DiscoveryResponse = _message("service.discovery.v3.DeltaDiscoveryResponse")
Resource = _message("service.discovery.v3.Resource")
Secret = _message("extensions.transport_sockets.tls.v3.Secret")


def handler_of(serve: Callable[..., Any]) -> grpc.GenericRpcHandler:
    """Return what a gRPC server is given, so that `serve(requests, context)` answers each stream."""
    method = grpc.stream_stream_rpc_method_handler(
        serve, DiscoveryRequest.FromString, DiscoveryResponse.SerializeToString
    )
    return grpc.method_handlers_generic_handler(SERVICE, {METHOD: method})
