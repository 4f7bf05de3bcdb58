"""Envoy's aggregated discovery over gRPC: the server, access to streams, and its messages."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import unquote

import grpc
from google.protobuf.message import DecodeError
from grpc.aio import ServicerContext

from api.proxies.envoy.streams import ProxyStreams
from api.proxies.protobuf import KINDS, TYPE_URLS, DiscoveryResponse, handler_of
from api.proxies.proxy_auth import ProxyAccess
from api.proxies.publisher import Published
from domain.text.errors import InvalidInputError
from domain.traffic.nodes import is_node_id
from traffic.stream import DiscoveryRequest, Response, TooManyNamesError

LARGEST_REQUEST = 4_194_304
"""The largest request: an Envoy that comes back names all that it holds, some 100 bytes for each cluster."""
_FIRST_WORD_SECONDS = 10
_MOST_WORDLESS = 256
_NO_NODE = "node.id must be 1 to 200 printable ASCII characters without blanks, such as edge-1."
_NO_PORT = "node.metadata.rollway_stats_port must be a whole number from 1 to 65535, such as 9902."
_HIGHEST_PORT = 65_535
_UNREADABLE = "This is no DeltaDiscoveryRequest: it cannot be read."
_OPTIONS = (
    ("grpc.so_reuseport", 0),  # a second server on this port is refused
    # a proxy that hangs, or vanished without a word, is noticed within 20 s
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    # and a proxy may look after its server as often
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 1_000),
    # who says nothing is left
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 10_000),
    ("grpc.max_concurrent_streams", 16),
    ("grpc.max_receive_message_length", LARGEST_REQUEST),
    ("grpc.max_send_message_length", -1),
)

_Context: TypeAlias = ServicerContext[Any, Any]


@dataclass(eq=False, slots=True)
class Discovery:
    """The service. Streams without a first message are bounded: beyond the limit the longest waiting one ends."""

    streams: ProxyStreams
    access: ProxyAccess
    _wordless: OrderedDict[asyncio.Future[object], None] = field(default_factory=OrderedDict)

    async def tell(self, requests: AsyncIterator[Any], context: _Context) -> None:
        """One stream of a proxy, until one of them ends it."""
        try:
            await self._serve(requests, context)
        except DecodeError:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, _UNREADABLE)
        except TooManyNamesError as error:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))

    async def _serve(self, requests: AsyncIterator[Any], context: _Context) -> None:
        """The proxy shows its token with its first message. Raises DecodeError for an unreadable one."""
        first = await self._first(requests)
        if first is None:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "A stream begins with a request.")
        node = first.node.id
        if not is_node_id(node):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, _NO_NODE)
        metadata = first.node.metadata.fields
        port = metadata["rollway_stats_port"].number_value if "rollway_stats_port" in metadata else None
        if port is not None and not (port.is_integer() and 1 <= port <= _HIGHEST_PORT):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, _NO_PORT)
        token = metadata["rollway_token"].string_value if "rollway_token" in metadata else ""
        why_not = self.access.why_not(node, token)
        if why_not is not None:
            code = grpc.StatusCode.PERMISSION_DENIED if token else grpc.StatusCode.UNAUTHENTICATED
            await context.abort(code, why_not)

        async def send(response: Response[Published]) -> None:
            await context.write(_message(response))

        stats = None if port is None else stats_address(context.peer(), int(port))
        await self.streams.serve(node, stats, _requests(first, requests), send)

    async def _first(self, requests: AsyncIterator[Any]) -> Any:  # noqa: ANN401  (a class that protobuf makes)
        word = asyncio.ensure_future(anext(requests, None))
        self._wordless[word] = None
        if len(self._wordless) > _MOST_WORDLESS:
            self._wordless.popitem(last=False)[0].cancel()
        try:
            await asyncio.wait((word,), timeout=_FIRST_WORD_SECONDS)
            return word.result() if word.done() and not word.cancelled() else None
        finally:
            word.cancel()
            self._wordless.pop(word, None)


async def serve(discovery: Discovery, address: str, most_connections: int) -> None:
    """Serve until cancelled. `address`: as gRPC writes it. Raises InvalidInputError when it is taken."""
    options = (*_OPTIONS, ("grpc.max_allowed_incoming_connections", most_connections))
    server = grpc.aio.server(options=options)
    server.add_generic_rpc_handlers((handler_of(discovery.tell),))
    try:
        server.add_insecure_port(address)
    except RuntimeError as error:
        message = f"ROLLWAY_DISCOVERY_PORT: nobody can listen at {address}; another program may do so"
        raise InvalidInputError(message, field="ROLLWAY_DISCOVERY_PORT") from error
    await server.start()
    try:
        await asyncio.Event().wait()
    finally:
        await server.stop(grace=None)


def stats_address(peer: str, port: int) -> str:
    """The address of its statistics: on the host that its stream comes from.

    gRPC writes that as ipv4:10.0.0.7:50321, and as unix: for one of this machine.
    """
    if peer.startswith("unix:"):
        return f"127.0.0.1:{port}"
    host = unquote(peer).partition(":")[2].rpartition(":")[0]
    return f"{host}:{port}"


async def _requests(first: Any, others: AsyncIterator[Any]) -> AsyncIterator[DiscoveryRequest]:  # noqa: ANN401  (as above)
    """Yield the requests of the kinds that we serve."""
    message = first
    while message is not None:
        kind = KINDS.get(message.type_url)
        if kind is not None:
            yield DiscoveryRequest(
                kind,
                subscribe=tuple(message.resource_names_subscribe),
                unsubscribe=tuple(message.resource_names_unsubscribe),
                holds=dict(message.initial_resource_versions),
                nonce=message.response_nonce,
                error=(message.error_detail.message or "no reason given") if message.HasField("error_detail") else "",
            )
        message = await anext(others, None)


def _message(response: Response[Published]) -> Any:  # noqa: ANN401  (as above)
    of_kind = response.table.messages[response.kind]
    return DiscoveryResponse(
        type_url=TYPE_URLS[response.kind],
        nonce=response.nonce,
        system_version_info=response.table.resources.version,
        resources=[of_kind[name].message for name in response.updates],
        removed_resources=response.removed,
    )
