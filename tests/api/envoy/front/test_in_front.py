"""A balancer stands in front of a real Envoy: what it says of callers is believed, and of nobody else."""

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.certificates.authorities import Authority
from tests.support.certificates.secured import GIVEN, KEY, secure, show
from tests.support.proxies.edge import Edge, api_process, edge_of
from tests.support.proxies.web_replicas import replicas
from tests.support.stack.ports import free_port
from tests.support.stack.waiting import eventually

CALLER = "203.0.113.7"
SAYS_V1 = f"PROXY TCP4 {CALLER} 127.0.0.1 5555 80\r\n".encode()
SAYS_V2 = (
    b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c"
    + socket.inet_aton(CALLER)
    + socket.inet_aton("127.0.0.1")
    + b"\x15\xb3\x00P"
)


@contextmanager
def edge_behind(database: str, redis_url: str, folder: Path, **said: str) -> Iterator[tuple[Edge, int]]:
    """An Envoy that is told of what stands in front of it, and its port for TLS."""
    tls = free_port()
    own = {"ROLLWAY_TLS_PORT": str(tls), "ROLLWAY_TLS_HOST": "127.0.0.1", "ROLLWAY_CERTIFICATE_KEY": KEY, **said}
    api = api_process(database, redis_url, folder, **own)
    with edge_of(api, database, redis_url, folder) as edge:
        yield edge, tls


def answer(host: str, port: int, first: bytes, secured: ssl.SSLContext | None = None, *headers: str) -> dict[str, str]:
    """What the replica was told, of a request on a connection that begins so; nothing where it is closed."""
    lines = (f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close", *headers)
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as plain:
            plain.sendall(first)
            with secured.wrap_socket(plain, server_hostname=host) if secured else plain as connection:
                connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
                heard = b"".join(iter(lambda: connection.recv(65536), b""))
    except OSError:
        return {}
    head, _, body = heard.partition(b"\r\n\r\n")
    found = json.loads(body) if b" 200 " in head.partition(b"\r\n")[0] else {}
    assert isinstance(found, dict)
    return found


CLAIMS = (f"x-forwarded-for: {CALLER}", "x-forwarded-proto: https")


@pytest.mark.parametrize(("hops", "proto"), [("0", "http"), ("1", "https")])
def test_proxies_in_front_are_believed_as_many_as_there_are(
    module_database: str, module_redis: str, tmp_path: Path, hops: str, proto: str
) -> None:
    host = f"behind-{hops}.example.com"
    with (
        edge_behind(module_database, module_redis, tmp_path, ROLLWAY_TRUSTED_HOPS=hops) as (edge, tls),
        replicas("web") as (replica,),
    ):
        web, authority = edge.make("■", replica, name=host.partition(".")[0]), Authority.make()
        secure(edge, web, host, **{**GIVEN, "redirect": False})
        show(edge, web, authority.certify(host), host)
        eventually(lambda: answer(host, edge.envoy.port, b""))
        told = answer(host, edge.envoy.port, b"", None, *CLAIMS)
        assert (told["proto"], told["for"].split(",")[0]) == (proto, CALLER)
        eventually(lambda: answer(host, tls, b"", authority.context()))
        assert answer(host, tls, b"", authority.context())["proto"] == "https"
        claimed = answer(host, tls, b"", authority.context(), "x-forwarded-proto: http")
        assert claimed["proto"] == ("https" if hops == "0" else "http")


def test_with_the_proxy_protocol_each_connection_says_who_asks(
    module_database: str, module_redis: str, tmp_path: Path
) -> None:
    host = "told.example.com"
    with (
        edge_behind(module_database, module_redis, tmp_path, ROLLWAY_PROXY_PROTOCOL="on") as (edge, tls),
        replicas("web") as (replica,),
    ):
        web, authority = edge.make("■", replica, name=host.partition(".")[0]), Authority.make()
        secure(edge, web, host, **{**GIVEN, "redirect": False})
        show(edge, web, authority.certify(host), host)
        for says in (SAYS_V1, SAYS_V2):
            eventually(lambda: answer(host, edge.envoy.port, says))  # noqa: B023
            assert answer(host, edge.envoy.port, says)["for"] == CALLER
            eventually(lambda: answer(host, tls, says, authority.context()))  # noqa: B023
            assert answer(host, tls, says, authority.context())["for"] == CALLER
        assert answer(host, edge.envoy.port, b"") == {}, "nobody else gets in"
        assert answer(host, tls, b"", authority.context()) == {}
