"""What cannot be stored never enters, and what Postgres refuses is a matter of that proxy alone."""

from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.support import plain_http
from tests.support.deployments import Made, write
from tests.support.edge import Edge
from tests.support.polling import Node
from tests.support.server_process import Process
from tests.support.waiting import eventually


def sent(api: Process, body: bytes) -> httpx.Response:
    head = {"content-type": "application/json"}
    return plain_http.post(f"{api.url}/v3/discovery:clusters", content=body, headers=head)


def test_what_postgres_or_json_cannot_hold_is_refused_with_the_name_of_the_field(edge: Edge, many: Made) -> None:
    usual = max(edge.seconds_of_a_drain(route) for route in many.routes[:2])
    bodies = [
        b'{"node": {"id": "x\\u0000y"}}',
        b'{"node": {"id": "\\ud800"}}',
        b'{"node": {"id": "x", "metadata": {"rollway_token": "\\ud800"}}}',
        b'{"node": {"id": "a b"}}',
        b'{"node": {"id": "\xc3\xbc"}}',
        b'{"node": {"id": NaN}}',
        b'{"node": {"id": "%s"}}' % (b"x" * 201),
        b'{"node": {"id": "x"}, "version_info": NaN}',
        b"[" * 5000,
        b"\xff\xfe",
    ]
    for body in bodies:
        answer = sent(edge.api, body)
        assert answer.status_code in (400, 422), body[:40]
        assert answer.json()["detail"]
    assert sent(edge.api, bodies[0]).json()["detail"].startswith("node.id: must be 1 to 200 printable ASCII characters")
    assert plain_http.get(f"{edge.api.url}/traefik?node=a%00b").status_code == 422
    assert edge.seconds_of_a_drain(many.routes[3]) < 20 * usual + 1


def test_a_proxy_that_postgres_refuses_stops_no_acknowledgement_of_another(edge: Edge, many: Made) -> None:
    usual = max(edge.seconds_of_a_drain(route) for route in many.routes[:2])
    engine = edge.routes.engine
    write(engine, "ALTER TABLE proxies ADD CONSTRAINT no_poison CHECK (node_id <> 'poison')")
    poison = Node(edge.api)
    poison.id = "poison"
    try:
        with ThreadPoolExecutor() as threads:
            held = threads.submit(poison.take, "clusters")
            eventually(lambda: plain_http.get(f"{edge.api.url}/healthz").json()["failed_writes"] > 0)
            assert max(edge.seconds_of_a_drain(route) for route in many.routes[2:5]) < 20 * usual + 1
            held.result()
        assert "rollway_proxy_writes_failed_total 0.0" not in plain_http.get(f"{edge.api.url}/metrics").text
        assert edge.known() >= {"edge-1"}
        eventually(lambda: plain_http.get(f"{edge.api.url}/healthz").json()["acknowledgements"] == "ok")
    finally:
        write(engine, "ALTER TABLE proxies DROP CONSTRAINT no_poison")
