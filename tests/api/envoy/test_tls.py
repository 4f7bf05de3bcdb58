"""Deployments that are reached by TLS, by a real Envoy: which certificate is shown, and what is done without one."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
from psycopg.types.json import Jsonb

from db.certificates import note_challenge
from db.connection.transactions import in_transaction
from db.proxies.traffic_reader import read_traffic
from domain.traffic.snapshot import RequestRules, stored_together
from domain.traffic.tls import CertificateKind, TlsSettings
from tests.support.certificates.authorities import Authority, Certified, ask, shown
from tests.support.certificates.http3_caller import calling_by_http3
from tests.support.certificates.secured import GIVEN, note, row, secure, show
from tests.support.people.asking import page
from tests.support.pictures.pictures import PROVISIONING
from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import replicas
from tests.support.rows.deployments import write
from tests.support.rows.entrances import set_tls
from tests.support.stack.waiting import eventually
from traffic.explanation import AskedFor, explain
from traffic.routing_table import derive_table


def is_shown(certified: Certified, door: int, authority: Authority) -> bool:
    return certified.chain.startswith(shown(door, "often.example.com", authority.context()))


def answers(url: str, authority: Authority, door: int, **more: Any) -> bool:
    try:
        return ask(url, authority.context(), door, **more).status_code == 200
    except httpx.TransportError:  # also of a read: in TLS 1.3 a caller hears after its handshake that it lacks one
        return False


def test_a_certificate_is_shown_to_who_asks_for_its_name_and_to_nobody_else(
    secure_edge: Edge, authority: Authority, tls_port: int
) -> None:
    with replicas("mine", "theirs") as (mine, theirs):
        web, other = secure_edge.make("■", mine), secure_edge.make("■", theirs)
        secure(secure_edge, web, "web.example.com", **GIVEN)
        show(secure_edge, web, authority.certify("web.example.com"), "web.example.com")
        secure(secure_edge, other, "other.example.com", **GIVEN)
        show(secure_edge, other, authority.certify("*.example.com"), "*.example.com")
        for host, name in (("web", "mine"), ("other", "theirs")):
            url = f"https://{host}.example.com/"
            eventually(partial(answers, url, authority, tls_port), what=url)
            for http2 in (False, True):
                answer = ask(url, authority.context(), tls_port, http2=http2)
                assert (answer.json()["replica"], answer.http_version) == (name, "HTTP/2" if http2 else "HTTP/1.1")
        assert "PRIVATE KEY" not in page(secure_edge.api.url, "/v1/traffic").text, "people see the table, and no key"
        with pytest.raises(httpx.ConnectError):
            ask("https://nobody.example.com/", authority.context(), tls_port)
        # who opened a connection for one name gets nothing of another's through it
        misdirected = ask("https://web.example.com/", authority.context(), tls_port, host="other.example.com")
        assert misdirected.status_code == 421
        assert "another host name" in misdirected.text


def test_who_comes_in_clear_text_is_sent_on_as_soon_as_there_is_a_certificate(
    secure_edge: Edge, authority: Authority, tls_port: int
) -> None:
    with replicas("mine") as (mine,):
        web = secure_edge.make("■", mine)
        secure(secure_edge, web, "clear.example.com", **GIVEN, hsts_seconds=3600)
        secure_edge.routes.tell()
        secure_edge.wait_for("/", 200, host="clear.example.com")
        show(secure_edge, web, authority.certify("clear.example.com"), "clear.example.com")
        secure_edge.wait_for("/a?b=c", 308, host="clear.example.com")
        answer = secure_edge.ask("/a?b=c", "POST", host="clear.example.com")
        assert answer.headers["location"] == f"https://clear.example.com:{tls_port}/a?b=c"
        # a header of the caller's own does not say that it came by TLS
        assert secure_edge.ask("/", host="clear.example.com", **{"x-forwarded-proto": "https"}).status_code == 308
        url = "https://clear.example.com/"
        eventually(partial(answers, url, authority, tls_port))
        assert ask(url, authority.context(), tls_port).headers["strict-transport-security"] == "max-age=3600"


def test_who_comes_by_tls_gets_the_page_too_where_no_replica_answers(
    secure_edge: Edge, authority: Authority, tls_port: int
) -> None:
    with replicas("mine") as (mine,):
        web = secure_edge.make("■|", mine, status=PROVISIONING, policy={"strategy": "recreate"})
        url = "https://paged.example.com/"
        secure(secure_edge, web, "paged.example.com", **GIVEN)
        show(secure_edge, web, authority.certify("paged.example.com"), "paged.example.com")
        add = "UPDATE deployments SET rules = rules || %s WHERE id = %s"
        write(
            secure_edge.routes.engine,
            add,
            Jsonb(stored_together(RequestRules(pages=(("503", "<h1>Soon</h1>"),)))),
            web.id,
        )
        secure_edge.routes.tell()
        eventually(partial(answers, url, authority, tls_port))
        secure_edge.routes.drain(*web.routes)
        for http2 in (False, True):
            answer = eventually(partial(left_alone, url, authority, tls_port, http2=http2))
            assert (answer.text, answer.headers["content-type"]) == ("<h1>Soon</h1>", "text/html; charset=utf-8")


def left_alone(url: str, authority: Authority, door: int, *, http2: bool) -> httpx.Response | None:
    answer = ask(url, authority.context(), door, http2=http2)
    return answer if answer.status_code == 503 else None


def explained_tls(edge: Edge, url: str) -> list[str]:
    table = derive_table(in_transaction(edge.routes.engine, read_traffic))
    return [line.says for line in explain(table, AskedFor.parse(url)).said if line.about == "tls"]


def test_callers_must_show_a_certificate_where_they_are_asked_for_one(
    secure_edge: Edge, authority: Authority, tls_port: int, tmp_path: Path
) -> None:
    with replicas("mine") as (mine,):
        web = secure_edge.make("■", mine)
        secure(secure_edge, web, "strict.example.com", **GIVEN, callers_ca="file:/ca.pem", redirect=False)
        secure_edge.routes.tell()
        secure_edge.wait_for("/", 403, host="strict.example.com")  # nobody gets in by another way meanwhile
        assert secure_edge.ask("/", host="preview.strict.example.com").status_code == 403
        must_show = "callers must show a certificate of their own (callers_ca), and get in by https:// alone"
        assert explained_tls(secure_edge, "http://strict.example.com/")[1:] == [
            must_show,
            "requests by http:// get 403",
        ]
        assert explained_tls(secure_edge, "http://preview.strict.example.com/") == [
            must_show,
            "requests by http:// get 403",
        ]
        show(secure_edge, web, authority.certify("strict.example.com"), "strict.example.com")
        url, own = "https://strict.example.com/", authority.certify("caller.example.com").written(tmp_path)
        secure_edge.wait_for("/", 308, host="strict.example.com")
        assert explained_tls(secure_edge, "https://strict.example.com/") == [must_show]
        sent_on = "requests by http:// are redirected to https:// (308)"
        assert explained_tls(secure_edge, "http://strict.example.com/") == [must_show, sent_on]
        assert not answers(url, authority, tls_port)
        note(secure_edge, row(web, CertificateKind.CALLERS), authority.pem, None)

        def gets_in() -> bool:
            try:
                return ask(url, authority.context(own), tls_port).status_code == 200
            except httpx.TransportError:
                return False

        eventually(gets_in)
        with pytest.raises(httpx.TransportError):
            ask(url, authority.context(), tls_port)
        stranger = Authority.make().certify("caller.example.com").written(tmp_path, "stranger")
        with pytest.raises(httpx.TransportError):
            ask(url, authority.context(stranger), tls_port)


def test_a_challenge_is_answered_by_the_proxy_itself(secure_edge: Edge) -> None:
    with replicas("mine") as (mine,):
        web = secure_edge.make("■", mine)
        secure(secure_edge, web, "new.example.com")
        order = row(web, CertificateKind.ACME, "new.example.com")
        in_transaction(
            secure_edge.routes.engine, partial(note_challenge, certificate=order, token="t0ken", answer="t0ken.thumb")
        )
        secure_edge.routes.tell()
        path = "/.well-known/acme-challenge/t0ken"
        secure_edge.wait_for(path, 200, host="new.example.com")
        eventually(lambda: secure_edge.ask(path, host="new.example.com").text == "t0ken.thumb")
        assert secure_edge.ask("/", host="new.example.com").json()["replica"] == "mine"


def test_a_certificate_is_replaced_under_load_without_a_handshake_that_fails(
    secure_edge: Edge, authority: Authority, tls_port: int
) -> None:
    with replicas("mine") as (mine,):
        web = secure_edge.make("■", mine)
        secure(secure_edge, web, "often.example.com", **GIVEN)
        show(secure_edge, web, authority.certify("often.example.com"), "often.example.com")
        url, over, came = "https://often.example.com/", Event(), Counter[bool]()
        eventually(partial(answers, url, authority, tls_port))

        def caller(*, http2: bool) -> list[str]:
            failed, context = [], authority.context()
            while not over.wait(0.005):
                try:
                    if ask(url, context, tls_port, http2=http2).status_code != 200:
                        failed.append("status")
                except httpx.TransportError as error:
                    failed.append(repr(error))
                came[http2] += 1
            return failed

        with ThreadPoolExecutor(2) as pool:
            callers = [pool.submit(caller, http2=http2) for http2 in (False, True)]
            replaced = 0
            while replaced < 5 or min(came[False], came[True]) < 20:
                coming = authority.certify("often.example.com")
                show(secure_edge, web, coming, "often.example.com")
                eventually(partial(is_shown, coming, tls_port, authority))
                replaced += 1
            over.set()
            assert [each.result() for each in callers] == [[], []]


def test_who_is_told_of_http3_may_come_by_it(
    secure_edge: Edge, authority: Authority, tls_port: int, tmp_path: Path
) -> None:
    host = "quick.example.com"
    with replicas("mine") as (mine,), calling_by_http3(tls_port, host, authority, tmp_path) as caller:
        web = secure_edge.make("■", mine)
        secure(secure_edge, web, host, **GIVEN, http3=True)
        for _ in range(2):  # the second certificate takes the place of the first, and nothing else changes
            show(secure_edge, web, authority.certify(host), host)
            eventually(lambda: plain_http.get(f"{caller}/x").status_code == 200, what="an answer by HTTP/3")
        assert plain_http.get(f"{caller}/x").json()["replica"] == "mine"
        told = ask(f"https://{host}/", authority.context(), tls_port).headers["alt-svc"]
        assert told == f'h3=":{tls_port}"; ma=86400'
        set_tls(secure_edge.routes.engine, web.id, TlsSettings(**GIVEN), (host,))
        secure_edge.routes.tell()
        eventually(lambda: "alt-svc" not in ask(f"https://{host}/", authority.context(), tls_port).headers)
