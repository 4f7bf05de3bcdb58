"""Streams as anybody may open them on the server for proxies: messages that are good but for a few of their parts."""

from contextlib import suppress
from math import inf, nan
from random import Random
from typing import Any

import grpc

from api.proxies.protobuf import TYPE_URLS, DiscoveryRequest
from domain.traffic.nodes import token_of
from tests.fuzz.hostile import hostile_text
from tests.fuzz.world import World
from tests.support.people.asking import KEY
from tests.support.proxies.edge import discovery_port

METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
_ENDED_WITHIN = 20.0


def send_stream(world: World, dice: Random) -> None:
    """One stream of a few messages, which the server ends with a status that is no fault of its own."""
    bodies = [_hostile_message(dice) for _ in range(dice.randrange(1, 6))]
    with grpc.insecure_channel(f"127.0.0.1:{discovery_port(world.api)}") as channel:
        call: Any = channel.stream_stream(METHOD, request_serializer=bytes)(iter(bodies), timeout=_ENDED_WITHIN)
        with suppress(grpc.RpcError):
            for _ in call:
                pass
        # UNKNOWN: an exception that nobody expected
        assert call.code() not in {grpc.StatusCode.UNKNOWN, grpc.StatusCode.DEADLINE_EXCEEDED}, (call.details(), bodies)


def _hostile_message(dice: Random) -> bytes:
    node = "edge-1" if dice.random() < 0.7 else _text(dice)
    urls = [*TYPE_URLS.values(), "", _text(dice)]
    message = DiscoveryRequest(
        type_url=dice.choice(urls),
        resource_names_subscribe=[_text(dice) for _ in range(dice.randrange(3))],
        resource_names_unsubscribe=[_text(dice) for _ in range(dice.randrange(3))],
        initial_resource_versions={_text(dice): _text(dice) for _ in range(dice.randrange(3))},
        response_nonce=dice.choice(("", "1", "2", _text(dice))),
    )
    message.node.id = node
    message.node.metadata.fields["rollway_token"].string_value = token_of("edge-1", KEY)
    if dice.random() < 0.3:
        message.node.metadata.fields["rollway_stats_port"].number_value = dice.choice((9902, 0, -1.5, inf, nan, 1e300))
    if dice.random() < 0.3:
        message.error_detail.code = dice.randrange(20)
    body = bytearray(message.SerializeToString())
    if dice.random() < 0.4:
        body[dice.randrange(len(body))] = dice.randrange(256)
    return bytes(body[: dice.randrange(len(body))] if dice.random() < 0.2 else body)


def _text(dice: Random) -> str:
    """Text as a message can hold it."""
    return hostile_text(dice)[:300].encode("utf-8", "replace").decode()
