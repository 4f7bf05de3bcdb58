"""Answers whose head Envoy refuses, and such as it takes: what `rollway probe` says of a head is what Envoy does."""

from collections.abc import Iterator
from socketserver import StreamRequestHandler

import pytest

from domain.traffic.wire import MOST_HEADER_LINES, refusal_of
from tests.support.proxies.edge import Edge
from tests.support.proxies.own_servers import own_server
from tests.support.rows.deployments import Made
from tests.support.stack.waiting import eventually

HEADS = {
    "a length": "200 OK;Content-Length: 0",
    "chunks": "200 OK;Transfer-Encoding: chunked",
    "chunks, in capitals": "200 OK;transfer-encoding: Chunked",
    "no length": "200 OK;Connection: close",
    "nothing": "204 No Content",
    "a value with a tab and Latin-1": "200 OK;X-A: b\tc \xe9;Content-Length: 0",
    "an empty value": "200 OK;X-A:;Content-Length: 0",
    "a name with every sign": "200 OK;!#$%&'*+.^_`|~: 1;Content-Length: 0",
    "as many lines as may be": "200 OK;" + ";".join(f"X-{n}: 1" for n in range(240)) + ";Content-Length: 0",
    "too many lines": "200 OK;" + ";".join(f"X-{n}: 1" for n in range(MOST_HEADER_LINES)) + ";Content-Length: 0",
    "too many bytes": f"200 OK;X-A: {'x' * 99_000};Content-Length: 0",
    "two lengths": "200 OK;Content-Length: 0;Content-Length: 1",
    "one length twice": "200 OK;Content-Length: 0;Content-Length: 0",
    "a length and chunks": "200 OK;Content-Length: 0;Transfer-Encoding: chunked",
    "chunks twice": "200 OK;Transfer-Encoding: chunked, chunked",
    "chunks on two lines": "200 OK;Transfer-Encoding: chunked;Transfer-Encoding: chunked",
    "a coding": "200 OK;Transfer-Encoding: gzip, chunked",
    "identity": "200 OK;Transfer-Encoding: identity",
    "204 in chunks": "204 No Content;Transfer-Encoding: chunked",
    "204 with a length": "204 No Content;Content-Length: 0",
    "304 in chunks": "304 Not Modified;Transfer-Encoding: chunked",
    "a blank in a name": "200 OK;X A: 1;Content-Length: 0",
    "a blank before the colon": "200 OK;X-A : 1;Content-Length: 0",
    "a line without a colon": "200 OK;X-A;Content-Length: 0",
    "a NUL": "200 OK;X-A: b\x00c;Content-Length: 0",
    "a control character": "200 OK;X-A: b\x01c;Content-Length: 0",
    "a bare CR": "200 OK;X-A: b\rc;Content-Length: 0",
    "no name": "200 OK;: 1;Content-Length: 0",
    "a length that is none": "200 OK;Content-Length: 0x0",
    "a negative length": "200 OK;Content-Length: -1",
    "a length with a sign": "200 OK;Content-Length: +0",
    "a list of lengths": "200 OK;Content-Length: 0, 0",
    "ends of lines without CR": "200 OK\nX-A: b\nContent-Length: 0",
    "folded": "200 OK;X-A: b;\tc;Content-Length: 0",
}


def head_of(name: str) -> bytes:
    return ("HTTP/1.1 " + HEADS[name].replace(";", "\r\n")).encode("latin-1")


asked_for: list[str] = []


class Raw(StreamRequestHandler):
    """Answers with the head that the path names, and closes the connection without a word."""

    def handle(self) -> None:
        path = self.rfile.readline().split(b" ")[1].decode()
        while self.rfile.readline().strip():
            pass
        number = path.rpartition("/")[2]
        asked_for.append(number)
        head = head_of(list(HEADS)[int(number)] if number else "a length")
        end = b"0\r\n\r\n" if b"chunked" in head.lower() and b" 200" in head[:13] else b""
        self.wfile.write(head + b"\r\n\r\n" + end)


@pytest.fixture(scope="module")
def raw(envoy_edge: Edge) -> Iterator[Made]:
    with own_server(Raw) as server:
        made = envoy_edge.make("■", server.address)
        envoy_edge.wait_for(f"/{made.name}/")
        yield made


@pytest.mark.parametrize("name", HEADS)
def test_what_is_said_of_a_head_is_what_envoy_does(envoy_edge: Edge, raw: Made, name: str) -> None:
    number = str(list(HEADS).index(name))

    def answered() -> int:
        """Zero where the request met a connection that its replica had just closed."""
        asked_for.clear()
        status = envoy_edge.ask(f"/{raw.name}/{number}", "POST").status_code
        return status if number in asked_for else 0

    status = eventually(answered)
    assert (status, refusal_of(head_of(name))) == (int(HEADS[name][:3]), "") or (
        status == 502 and refusal_of(head_of(name))
    )
