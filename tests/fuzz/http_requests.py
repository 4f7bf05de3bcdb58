"""HTTP as anybody may send it to the server for proxies: raw bytes over a socket of its own for each request."""

import json
import socket
from collections.abc import Sequence
from contextlib import suppress
from random import Random

from domain.traffic.nodes import token_of
from tests.fuzz.hostile import changed, hostile_text
from tests.fuzz.world import World
from tests.support.people.asking import KEY

PATHS: Sequence[str] = (
    "/healthz",
    "/metrics",
    "/metrics/fleet",
    "/prometheus/targets",
    "/v1/traffic",
    "/traefik",
    f"/traefik?node=edge-2&token={token_of('edge-2', KEY)}&poll_seconds=5",
    "/nothing",
)
_BODY = {"node": {"id": "edge-1", "metadata": {"rollway_token": token_of("edge-1", KEY)}}, "names": []}
_ANSWERED_WITHIN = 0.5
_CLOSED_WITHIN = 10.0


def hostile_request(dice: Random) -> bytes:
    """A request that is good but for a few of its parts."""
    raw = _get(dice) if dice.random() < 0.4 else _post(dice)
    match dice.randrange(8):
        case 0:
            return raw[: dice.randrange(len(raw))]
        case 1:
            place = dice.randrange(len(raw))
            return raw[:place] + bytes([dice.randrange(256)]) + raw[place + 1 :]
        case 2:
            return raw.replace(b"\r\n\r\n", b"\r\nX-Long: " + b"a" * dice.choice((1_000, 70_000)) + b"\r\n\r\n", 1)
        case 3:
            return raw.replace(b"HTTP/1.1", dice.choice((b"HTTP/9.9", b"", b"HTTP/1.0")), 1)
        case _:
            return raw


def _get(dice: Random) -> bytes:
    path = dice.choice(PATHS)
    if dice.random() < 0.5:
        said = hostile_text(dice)[:3000].encode("utf-8", "surrogatepass")
        quoted = "".join(f"%{byte:02x}" for byte in said)
        path = f"/traefik?node={quoted}&token={quoted}&poll_seconds={dice.choice(('nan', 'inf', '-1', '1e400', '5'))}"
    return f"GET {path} HTTP/1.1\r\nHost: rollway\r\nConnection: close\r\n\r\n".encode()


def _post(dice: Random) -> bytes:
    body = json.dumps(changed(_BODY, dice)).encode()
    if dice.random() < 0.2:
        body = dice.choice((b"", b"null", b"[" * 5_000, b"\xff\xfe", b'{"node": {"id": "\\ud800"}}', b"{" + body))
    length = len(body) if dice.random() < 0.9 else dice.choice((-1, 0, 10**9, 10**30))
    head = f"POST {dice.choice(PATHS)} HTTP/1.1\r\nHost: rollway\r\nConnection: close\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n".encode() + body


def send_request(world: World, dice: Random) -> None:
    """One connection: an answer that is no fault of the server, or the end of the connection when we end our side.

    A request of which not all has come is answered by nothing for a while.
    """
    raw = hostile_request(dice)
    status = _status_of(world.api.port, raw)
    assert status is None or status < 500 or (status == 503 and b"/healthz" in raw), (status, raw)


def _status_of(port: int, raw: bytes) -> int | None:
    with socket.create_connection(("127.0.0.1", port), timeout=_CLOSED_WITHIN) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # refused before all of it was sent
            connection.sendall(raw)
        connection.settimeout(_ANSWERED_WITHIN)
        try:
            answer = connection.recv(100)
        except TimeoutError:
            connection.settimeout(_CLOSED_WITHIN)
            with suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(100)
        except ConnectionResetError:
            return None
    return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/") else None
