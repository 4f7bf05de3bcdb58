"""A proxy that is played by hand, on a stream of its own."""

import queue
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import uuid4

import grpc
from google.protobuf.json_format import MessageToDict

from api.proxies.protobuf import KINDS, METHOD, POOL, SERVICE, TYPE_URLS, DiscoveryRequest, DiscoveryResponse
from domain.traffic.nodes import token_of
from tests.support.people.asking import KEY, page
from tests.support.proxies.edge import discovery_port
from tests.support.stack.server_process import Process
from traffic.resources import ResourceKind


@dataclass(frozen=True, slots=True)
class Told:
    """A response: versions of what changed, the resources as JSON, and names of what is gone."""

    kind: ResourceKind
    nonce: str
    versions: dict[str, str]
    resources: dict[str, dict[str, Any]]
    removed: tuple[str, ...]


@dataclass
class Node:
    """A proxy that says what it is told to say. It takes nothing over by itself."""

    api: Process
    id: str = field(default_factory=lambda: f"node-{uuid4().hex[:6]}")
    token: str | None = None
    stats_port: float | None = None
    held: dict[ResourceKind, dict[str, str]] = field(default_factory=lambda: {kind: {} for kind in ResourceKind})

    def __post_init__(self) -> None:
        self._channel: grpc.Channel | None = None
        self._said: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._call: Any = None

    def open(self) -> None:
        """A new stream; nothing is said on it yet."""
        self.close()
        self._said = queue.SimpleQueue()
        self._channel = grpc.insecure_channel(
            f"127.0.0.1:{discovery_port(self.api)}", [("grpc.use_local_subchannel_pool", 1)]
        )
        ask = self._channel.stream_stream(
            f"/{SERVICE}/{METHOD}", DiscoveryRequest.SerializeToString, DiscoveryResponse.FromString
        )
        self._call = ask(iter(self._said.get, None), wait_for_ready=True)

    def close(self) -> None:
        """Hang up."""
        self._said.put(None)
        if self._channel is not None:
            self._call.cancel()
            self._channel.close()
            self._channel = None

    def say(self, kind: ResourceKind, **fields: Any) -> None:
        """A request, with who it is."""
        request = DiscoveryRequest(type_url=TYPE_URLS[kind], **fields)
        request.node.id = self.id
        request.node.metadata.fields["rollway_token"].string_value = (
            token_of(self.id, KEY) if self.token is None else self.token
        )
        if self.stats_port is not None:
            request.node.metadata.fields["rollway_stats_port"].number_value = self.stats_port
        self.say_raw(request)

    def say_raw(self, request: Any) -> None:
        """Anything."""
        if self._channel is None:
            self.open()
        self._said.put(request)

    def ask(self, kind: ResourceKind, *names: str) -> None:
        """Ask for resources of a kind, with what it holds of it from another stream."""
        self.say(kind, resource_names_subscribe=names, initial_resource_versions=self.held[kind])

    def hear(self) -> Told:
        """The next response; waits for it. Raises grpc.RpcError when the stream ends."""
        message = next(self._call)
        return Told(
            KINDS[message.type_url],
            message.nonce,
            {resource.name: resource.version for resource in message.resources},
            {resource.name: _content(resource) for resource in message.resources},
            tuple(message.removed_resources),
        )

    def accept(self, told: Told) -> None:
        """Take it over, and say so."""
        self.held[told.kind] |= told.versions
        for name in told.removed:
            self.held[told.kind].pop(name, None)
        self.say(told.kind, response_nonce=told.nonce)

    def refuse(self, told: Told, why: str = "it is poison") -> None:
        """Say that it is not taken over."""
        self.say(told.kind, response_nonce=told.nonce, error_detail={"code": 13, "message": why})

    def take_all(self) -> None:
        """Ask for everything, and take over what comes, until it holds clusters, endpoints and routes."""
        self.ask(ResourceKind.CLUSTERS)
        self.accept(self.hear())
        self.ask(ResourceKind.ENDPOINTS, *self.held[ResourceKind.CLUSTERS])
        self.ask(ResourceKind.ROUTES, "rollway")
        of_each = ResourceKind.CLUSTERS, ResourceKind.ENDPOINTS, ResourceKind.ROUTES
        while not all(self.held[kind] for kind in of_each):
            self.accept(self.hear())

    def send_bytes(self, body: bytes) -> None:
        """A stream of its own that begins with these bytes; waits for what comes."""
        with grpc.insecure_channel(f"127.0.0.1:{discovery_port(self.api)}") as channel:
            next(iter(channel.stream_stream(f"/{SERVICE}/{METHOD}", request_serializer=bytes)(iter([body]))))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _content(resource: Any) -> dict[str, Any]:
    return dict(MessageToDict(resource.resource, preserving_proto_field_name=True, descriptor_pool=POOL))


def live_servers(api: Process, name: str) -> int:
    """How many replicas the server tells of; none before it has heard of the deployment."""
    services = {service["name"]: service for service in page(api.url, "/v1/traffic").json()["services"]}
    return len(services[name]["live"]) if name in services else 0
