"""One listener for callers by IPv6 and by IPv4, at ports that a supervisor keeps for it."""

import socket
from functools import partial
from pathlib import Path

import pytest

from stack.part_specs import Ready, StackPart
from stack.supervisor.child.supervised import KeptPorts
from tests.support.certificates.authorities import Authority
from tests.support.certificates.secured import GIVEN, KEY, secure, show
from tests.support.proxies.edge import Edge, EdgeRoutes, api_process, envoy_process
from tests.support.proxies.web_replicas import replicas
from tests.support.rows.databases import engine_on
from tests.support.stack.ports import free_port
from tests.support.stack.waiting import eventually

FAMILIES = ("127.0.0.1", "::1")


def answer(host: str, port: int, authority: Authority | None = None) -> bytes:
    """The first line of the answer to who asks at this address, by TLS where there is an authority."""
    client = socket.create_connection((host, port), timeout=10)
    if authority is not None:
        client = authority.context().wrap_socket(client, server_hostname="six.example.com")
    with client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: six.example.com\r\nConnection: close\r\n\r\n")
        return client.recv(4096).partition(b"\r\n")[0]


def is_answered(host: str, port: int, authority: Authority | None = None) -> bool:
    try:
        return (b" 200 " if authority else b" 308 ") in answer(host, port, authority)
    except OSError:
        return False


def test_an_envoy_at_all_addresses_is_reached_by_both_families_and_its_ports_are_kept_for_both(
    module_database: str, module_redis: str, tmp_path: Path, authority: Authority
) -> None:
    door = free_port()
    own = {"ROLLWAY_TLS_PORT": str(door), "ROLLWAY_TLS_HOST": "::", "ROLLWAY_CERTIFICATE_KEY": KEY}
    api = api_process(module_database, module_redis, tmp_path, **own)
    envoy, engine = envoy_process(api, tmp_path, host="::"), engine_on(module_database)
    shares = (("::", envoy.port), ("::", door))
    kept = KeptPorts(StackPart(name="envoy", command=(), cwd=str(tmp_path), ready=Ready("unix", ""), shares=shares))
    kept.keep()
    try:
        for host in FAMILIES:
            with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as stranger:
                stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                with pytest.raises(OSError, match="in use"):
                    stranger.bind((host, envoy.port))
        api.start()
        envoy.start()
        edge = Edge(EdgeRoutes(engine, module_redis), api, envoy)
        with replicas("six") as (six,):
            web = edge.make("■", six)
            secure(edge, web, "six.example.com", **GIVEN)
            show(edge, web, authority.certify("six.example.com"), "six.example.com")
            for host in FAMILIES:
                eventually(partial(is_answered, host, envoy.port), what=f"an answer at {host}")
                eventually(partial(is_answered, host, door, authority), what=f"an answer by TLS at {host}")
    finally:
        for process in (envoy, api):
            if process.process is not None:
                process.end(kill=True)
        kept.close()
        engine.dispose()
