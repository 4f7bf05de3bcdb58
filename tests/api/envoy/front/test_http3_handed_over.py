"""Callers by HTTP/3 while an Envoy hands over to another one, as `rollway restart --part envoy` does it."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event

from sqlalchemy import Engine

from tests.support.certificates.authorities import Authority
from tests.support.certificates.http3_caller import calling_by_http3
from tests.support.certificates.secured import GIVEN, KEY, secure, show
from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge, EdgeRoutes, api_process, envoy_process
from tests.support.proxies.web_replicas import replicas
from tests.support.stack.ports import free_port
from tests.support.stack.server_process import running
from tests.support.stack.waiting import eventually

HOST = "quick.example.com"
OPTIONS = ("--drain-time-s", "1", "--drain-strategy", "immediate", "--parent-shutdown-time-s", "5")


def unanswered(url: str, over: Event) -> list[str]:
    """What callers got but an answer, until it is over."""
    found = []
    while not over.wait(0.005):
        answer = plain_http.get(url)
        if answer.status_code != 200:
            found.append(f"{answer.status_code} {answer.text}")
    return found


def test_they_lose_nothing_while_an_envoy_hands_over(
    database: str, engine: Engine, redis_url: str, tmp_path: Path
) -> None:
    door, authority = free_port(), Authority.make()
    own = {"ROLLWAY_TLS_PORT": str(door), "ROLLWAY_TLS_HOST": "127.0.0.1", "ROLLWAY_CERTIFICATE_KEY": KEY}
    api = api_process(database, redis_url, tmp_path, **own)
    old = envoy_process(api, tmp_path, "edge-hot", ("--base-id", str(os.getpid()), *OPTIONS))
    new = replace(old, command=[*old.command, "--restart-epoch", "1"])
    edge, over = Edge(EdgeRoutes(engine, redis_url), api, old), Event()
    with (
        running(api),
        running(old),
        replicas("mine") as (mine,),
        calling_by_http3(door, HOST, authority, tmp_path) as caller,
        ThreadPoolExecutor(4) as pool,
    ):
        web = edge.make("■", mine)
        secure(edge, web, HOST, **GIVEN, http3=True)
        show(edge, web, authority.certify(HOST), HOST)
        eventually(lambda: plain_http.get(f"{caller}/x").status_code == 200, what="an answer by HTTP/3")
        callers = [pool.submit(unanswered, f"{caller}/x", over) for _ in range(4)]
        with running(new):
            eventually(lambda: new.stat("server.hot_restart_generation") == 2)
            ending = old.process
            assert ending is not None
            eventually(lambda: ending.poll() is not None, what="the old one to end")
            served = mine.served["GET"]
            eventually(lambda: mine.served["GET"] > served + 50, what="requests through the new one")
            over.set()
            assert [caller.result() for caller in callers] == [[], [], [], []]
